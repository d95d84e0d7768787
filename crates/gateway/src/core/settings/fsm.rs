//! Which messages a connection may send, and when: a state machine read from
//! JSON.

use super::json::{Object, SettingsError, parse, wrong};

/// A state machine over message types.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fsm {
    states: Vec<State>,
    initial: usize,
    /// What was left out of the file, and why.
    left_out: Vec<String>,
}

/// Where one connection stands in its [`Fsm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FsmState(usize);

#[derive(Clone, Debug, PartialEq, Eq)]
struct State {
    name: String,
    allowed: Vec<(u32, u32)>,
    denied: Vec<(u32, u32)>,
    transitions: Vec<(u32, usize)>,
}

impl Fsm {
    /// Reads a state machine.
    ///
    /// ```
    /// use lagometer_gateway::core::Fsm;
    ///
    /// let fsm = Fsm::from_json(r#"{ "States": [
    ///     { "Name": "INIT", "MsgTypeWhitelist": "1" },
    ///     { "Name": "OPEN", "MsgTypeWhitelist": "2-65535", "MsgTypeBlacklist": "9" }
    /// ] }"#)?;
    /// let open = fsm.after_login(fsm.start());
    /// assert!(!fsm.allows(fsm.start(), 6));
    /// assert!(fsm.allows(open, 6) && !fsm.allows(open, 9));
    /// # Ok::<_, lagometer_gateway::core::SettingsError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`SettingsError`] names the key that is wrong.
    pub fn from_json(text: &str) -> Result<Self, SettingsError> {
        let value = parse(text)?;
        let file = Object::new(&value, "")?;
        let mut states = Vec::new();
        for (index, state) in file.list("States")?.iter().enumerate() {
            let state = Object::new(state, format!("States[{index}]"))?;
            let ranges =
                |key| ranges(state.text(key)?).map_err(|reason| wrong(&state.path_of(key), reason));
            states.push(State {
                name: state.text("Name")?.to_owned(),
                allowed: ranges("MsgTypeWhitelist")?,
                denied: ranges("MsgTypeBlacklist")?,
                transitions: Vec::new(),
            });
        }
        if states.is_empty() {
            return Err(wrong("States", "must hold at least one state"));
        }
        let place = |name: &str| states.iter().position(|state| state.name == name);
        let initial = match file.text("InitState")? {
            "" => 0,
            name => place(name)
                .ok_or_else(|| wrong("InitState", format!("there is no state {name:?}")))?,
        };
        let (mut transitions, mut left_out) = (Vec::new(), Vec::new());
        for (index, transition) in file.list("Transitions")?.iter().enumerate() {
            let transition = Object::new(transition, format!("Transitions[{index}]"))?;
            let names = [
                ("FromState", transition.text("FromState")?),
                ("ToState", transition.text("ToState")?),
            ];
            let msg_type = transition.unsigned("MsgType")?;
            match names.map(|(_, name)| place(name)) {
                [Some(from), Some(to)] => transitions.push((from, msg_type, to)),
                // channeld's files may name states that they do not have.
                places => left_out.extend(
                    names
                        .iter()
                        .zip(places)
                        .filter(|(_, place)| place.is_none())
                        .map(|((key, name), _)| {
                            let path = transition.path_of(key);
                            format!("{path}: there is no state {name:?}: it is left out")
                        }),
                ),
            }
        }
        for (from, msg_type, to) in transitions {
            states[from].transitions.push((msg_type, to));
        }
        Ok(Self {
            states,
            initial,
            left_out,
        })
    }

    /// Transitions of the file that lead from or to states it does not have, each
    /// with where it stands: there is no way along them.
    #[must_use]
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }

    /// What game servers may do: log in, then everything.
    #[must_use]
    pub fn server() -> Self {
        Self::two_states(vec![(2, 65_535)])
    }

    /// What clients may do where servers decide everything: log in, then
    /// unsubscribe and send the game's own messages.
    #[must_use]
    pub fn client() -> Self {
        Self::two_states(vec![(7, 7), (99, 65_535)])
    }

    /// What clients may do that subscribe and update by themselves.
    #[must_use]
    pub fn authoritative_client() -> Self {
        Self::two_states(vec![(3, 8), (15, 65_535)])
    }

    /// Where a new connection stands.
    #[must_use]
    pub fn start(&self) -> FsmState {
        FsmState(self.initial)
    }

    /// Whether a message of this type may be sent.
    #[must_use]
    pub fn allows(&self, at: FsmState, msg_type: u32) -> bool {
        let within = |ranges: &[(u32, u32)]| {
            ranges
                .iter()
                .any(|(first, last)| (*first..=*last).contains(&msg_type))
        };
        let state = &self.states[at.0];
        within(&state.allowed) && !within(&state.denied)
    }

    /// Whether there is a state in which a message of this type may be sent.
    #[must_use]
    pub fn allows_somewhere(&self, msg_type: u32) -> bool {
        (0..self.states.len()).any(|state| self.allows(FsmState(state), msg_type))
    }

    /// Where a connection stands once it has sent a message of this type.
    #[must_use]
    pub fn after(&self, at: FsmState, msg_type: u32) -> FsmState {
        let transitions = &self.states[at.0].transitions;
        transitions
            .iter()
            .find(|(of_type, _)| *of_type == msg_type)
            .map_or(at, |(_, to)| FsmState(*to))
    }

    /// Where a connection stands once it is let in: the state after this one in
    /// the list. Its AUTH may have moved it by a transition before.
    #[must_use]
    pub fn after_login(&self, at: FsmState) -> FsmState {
        FsmState((at.0 + 1).min(self.states.len() - 1))
    }

    /// The state's name.
    #[must_use]
    pub fn name(&self, at: FsmState) -> &str {
        &self.states[at.0].name
    }

    fn two_states(open: Vec<(u32, u32)>) -> Self {
        let state = |name: &str, allowed| State {
            name: name.to_owned(),
            allowed,
            denied: Vec::new(),
            transitions: Vec::new(),
        };
        Self {
            states: vec![state("INIT", vec![(1, 1)]), state("OPEN", open)],
            initial: 0,
            left_out: Vec::new(),
        }
    }
}

/// Reads `1, 3-8, 15-65535`.
fn ranges(text: &str) -> Result<Vec<(u32, u32)>, String> {
    let mut ranges = Vec::new();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.trim()
                .parse::<u32>()
                .map_err(|_| format!("{part:?} is neither a number nor a range of two, as 3-8"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(format!("the range {part:?} ends before it begins"));
        }
        ranges.push((first, last));
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_with_transitions_goes_where_they_lead() {
        let fsm = Fsm::from_json(
            r#"{ "initstate": "INIT", "states": [
                { "name": "INIT", "msgtypewhitelist": "1" },
                { "Name": "OPEN", "MsgTypeWhitelist": "2-10, 20", "MsgTypeBlacklist": "9" },
                { "Name": "HANDOVER", "MsgTypeWhitelist": "21,22" } ],
              "Transitions": [
                { "FromState": "OPEN", "ToState": "HANDOVER", "MsgType": 20 },
                { "FromState": "HANDOVER", "ToState": "OPEN", "MsgType": 22 } ] }"#,
        )
        .unwrap();
        let open = fsm.after_login(fsm.start());
        assert_eq!(fsm.name(open), "OPEN");
        assert!(fsm.allows(open, 20) && !fsm.allows(open, 9) && !fsm.allows(open, 21));
        let handover = fsm.after(open, 20);
        assert_eq!(fsm.name(handover), "HANDOVER");
        assert_eq!(fsm.after(handover, 22), open);
        assert_eq!(fsm.after(open, 3), open);
        assert_eq!(fsm.after_login(handover), handover, "there is no next one");
    }

    #[test]
    fn a_mistake_is_named() {
        let error = |text| Fsm::from_json(text).unwrap_err().to_string();
        assert!(error("{").starts_with("line 1, column 1: "));
        assert_eq!(error("{}"), "States: must hold at least one state");
        assert_eq!(
            error(r#"{ "States": [ { "Name": "A", "MsgTypeWhitelist": "1, x" } ] }"#),
            "States[0].MsgTypeWhitelist: \"x\" is neither a number nor a range of two, as 3-8"
        );
        assert_eq!(
            error(r#"{ "States": [ { "Name": "A" } ], "InitState": "B" }"#),
            "InitState: there is no state \"B\""
        );
    }

    #[test]
    fn a_transition_of_unknown_states_is_left_out() {
        let fsm = Fsm::from_json(
            r#"{ "States": [ { "Name": "A" }, { "Name": "B" } ], "Transitions": [
                { "FromState": "A", "MsgType": 3 },
                { "FromState": "A", "ToState": "B", "MsgType": 4 } ] }"#,
        )
        .unwrap();
        assert_eq!(
            fsm.left_out(),
            ["Transitions[0].ToState: there is no state \"\": it is left out"]
        );
        assert_eq!(fsm.name(fsm.after(fsm.start(), 3)), "A");
        assert_eq!(fsm.name(fsm.after(fsm.start(), 4)), "B");
    }
}
