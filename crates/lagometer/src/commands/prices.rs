//! Price lists that a user names.

use lagometer_lab::Resolved;
use lagometer_results::Prices;

use crate::cli::PricesArguments;
use crate::failure::{Failure, read};

/// The lists in the files that are named; none where none is.
pub(crate) fn named(arguments: &PricesArguments) -> Result<Vec<Prices>, Failure> {
    let mut lists: Vec<Prices> = Vec::new();
    for path in &arguments.prices {
        let origin = path.display().to_string();
        let list = Prices::parse(&origin, &read(path)?).map_err(Failure::input)?;
        if lists.iter().any(|other| other.name == list.name) {
            return Err(Failure::Input(format!(
                "{origin}: another price list is called `{}`; give one of them another `name`",
                list.name
            )));
        }
        lists.push(list);
    }
    Ok(lists)
}

/// What is to be played, with the lists in the files that are named in place of its own.
pub(crate) fn put_in(
    arguments: &PricesArguments,
    mut resolved: Resolved,
) -> Result<Resolved, Failure> {
    let named = named(arguments)?;
    if !named.is_empty() {
        resolved.experiment.prices = named;
    }
    Ok(resolved)
}

/// Those in the files that are named, else those that are built in.
pub(crate) fn lists(arguments: &PricesArguments) -> Result<Vec<Prices>, Failure> {
    let named = named(arguments)?;
    Ok(if named.is_empty() {
        Prices::built_in()
    } else {
        named
    })
}
