//! What may be chosen of a lane: the settings that its transport declares, from the
//! lane itself and from every preset that promises the same.

use lagometer_transport::Tunable;
use serde_json::{Map, Value};

/// Settings to choose, and where to start from.
#[derive(Clone, Debug)]
pub struct Space {
    tunables: Vec<Tunable>,
    starts: Vec<Start>,
}

/// A point to start from, with settings of its own beside those that are searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The name of the settings, as in messages.
    pub name: String,
    /// Its value of each setting that is searched, where it has one.
    pub own: Vec<Option<Value>>,
}

/// Settings that may be played.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Which of the space's starts it changes.
    pub start: usize,
    /// Of each searched setting the value that differs from the start's, if it does.
    pub values: Vec<Option<Value>>,
}

impl Space {
    /// A space of `tunables`; the first of `starts` is the lane as it is.
    ///
    /// # Panics
    ///
    /// Without a start, or if one does not have an entry for each setting.
    #[must_use]
    pub fn new(tunables: Vec<Tunable>, starts: Vec<Start>) -> Self {
        assert!(!starts.is_empty(), "a space has a point to start from");
        for start in &starts {
            assert_eq!(start.own.len(), tunables.len(), "{}", start.name);
        }
        Self { tunables, starts }
    }

    /// The settings that are searched.
    #[must_use]
    pub fn tunables(&self) -> &[Tunable] {
        &self.tunables
    }

    /// The points to start from.
    #[must_use]
    pub fn starts(&self) -> &[Start] {
        &self.starts
    }

    /// A start as it is.
    #[must_use]
    pub fn start(&self, start: usize) -> Candidate {
        Candidate {
            start,
            values: vec![None; self.tunables.len()],
        }
    }

    /// The candidate at these positions, one for each setting, from a start.
    #[must_use]
    pub fn at(&self, start: usize, positions: &[f64]) -> Candidate {
        let mut candidate = self.start(start);
        for (index, position) in positions.iter().enumerate() {
            candidate = self.with(&candidate, index, self.tunables[index].range.at(*position));
        }
        candidate
    }

    /// `candidate` with another value of one setting.
    #[must_use]
    pub fn with(&self, candidate: &Candidate, index: usize, value: Value) -> Candidate {
        let mut changed = candidate.clone();
        let own = self.starts[candidate.start].own[index].as_ref();
        changed.values[index] = (own != Some(&value)).then_some(value);
        changed
    }

    /// The value of one setting, the start's own where nothing else is chosen.
    #[must_use]
    pub fn value<'a>(&'a self, candidate: &'a Candidate, index: usize) -> Option<&'a Value> {
        candidate.values[index]
            .as_ref()
            .or(self.starts[candidate.start].own[index].as_ref())
    }

    /// Where a setting's value stands in its range, from 0 to 1; in the middle where
    /// the start has none.
    #[must_use]
    pub fn position(&self, candidate: &Candidate, index: usize) -> f64 {
        self.value(candidate, index)
            .and_then(|value| self.tunables[index].range.position(value))
            .unwrap_or(0.5)
    }

    /// What the candidate changes of its start, as an experiment writes it.
    #[must_use]
    pub fn overrides(&self, candidate: &Candidate) -> Map<String, Value> {
        let mut overrides = Map::new();
        for (tunable, value) in self.tunables.iter().zip(&candidate.values) {
            if let Some(value) = value {
                tunable.put(value.clone(), &mut overrides);
            }
        }
        overrides
    }

    /// A text that is the same for equal candidates alone.
    #[must_use]
    pub fn key(&self, candidate: &Candidate) -> String {
        let overrides = Value::Object(self.overrides(candidate));
        format!("{} {overrides}", self.starts[candidate.start].name)
    }
}
