//! Changing settings key by key.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::BadSetting;

/// `settings` with those in `overrides` in place of its own. Tables within
/// are merged likewise. Whether they make sense together is not looked at.
///
/// # Errors
///
/// [`BadSetting`] names the first that is unknown or of the wrong kind.
///
/// # Panics
///
/// If the settings are not a table with keys that are strings.
pub fn with_overrides<T: Clone + Serialize + DeserializeOwned>(
    settings: &T,
    overrides: &Map<String, Value>,
) -> Result<T, BadSetting> {
    let mut table =
        serde_json::to_value(settings).expect("settings are tables with keys that are strings");
    let mut changed = settings.clone();
    // One by one, so that the one at fault can be named.
    for (key, value) in overrides {
        merge(&mut table[key.as_str()], value);
        changed =
            T::deserialize(&table).map_err(|error| BadSetting::new(key, error.to_string()))?;
    }
    Ok(changed)
}

/// Puts `over` in place of `base`; of two tables, key by key.
fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}
