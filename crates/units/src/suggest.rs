//! Names that were nearly right.

/// What to say of `asked`, which is none of the names `known`: "did you mean …", or
/// the whole list where nothing is near.
#[must_use]
pub fn suggest(asked: &str, known: &[&str]) -> String {
    let nearest = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(asked, name), *name))
        .filter(|&(distance, _)| distance <= 1 + asked.len() / 4)
        .min();
    match nearest {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None => format!("there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let known = ["kcp", "enet", "quic-datagram"];
        assert_eq!(suggest("ent", &known), "did you mean `enet`?");
        assert_eq!(
            suggest("quic-datagrams", &known),
            "did you mean `quic-datagram`?"
        );
        assert_eq!(
            suggest("raknet", &known),
            "there are kcp, enet, quic-datagram"
        );
    }
}
