//! Settings files as games have them: JSON whose keys may be written in any
//! case, and whose absent keys mean zero.

use serde_json::{Map, Value};

/// What is wrong with a settings file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// It is no JSON at all.
    #[error("line {line}, column {column}: {reason}")]
    NotJson {
        /// The line of the error, from 1.
        line: usize,
        /// The column of the error in its line, from 1.
        column: usize,
        /// What the parser expected there.
        reason: String,
    },
    /// A value is not what is wanted there.
    #[error("{path}: {reason}")]
    Value {
        /// The value's place in the file: keys with dots between.
        path: String,
        /// What is wrong and what would be right.
        reason: String,
    },
}

/// An object and where it stands in its file.
#[derive(Clone, Debug)]
pub(super) struct Object<'a> {
    map: &'a Map<String, Value>,
    path: String,
}

/// Reads a file's text.
pub(super) fn parse(text: &str) -> Result<Value, SettingsError> {
    serde_json::from_str(text).map_err(|error| SettingsError::NotJson {
        line: error.line(),
        column: error.column(),
        reason: error.to_string(),
    })
}

pub(super) fn wrong(path: &str, reason: impl Into<String>) -> SettingsError {
    SettingsError::Value {
        path: if path.is_empty() { "file" } else { path }.to_owned(),
        reason: reason.into(),
    }
}

impl<'a> Object<'a> {
    pub(super) fn new(value: &'a Value, path: impl Into<String>) -> Result<Self, SettingsError> {
        let path = path.into();
        match value {
            Value::Object(map) => Ok(Self { map, path }),
            _ => Err(wrong(&path, "must be an object, { … }")),
        }
    }

    /// The value of a key in whatever case it is written.
    pub(super) fn find(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key).or_else(|| {
            self.map
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(key))
                .map(|(_, value)| value)
        })
    }

    /// All entries, in the file's order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Value)> {
        self.map.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub(super) fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }

    pub(super) fn object(&self, key: &str) -> Result<Option<Self>, SettingsError> {
        self.find(key)
            .filter(|value| !value.is_null())
            .map(|value| Self::new(value, self.path_of(key)))
            .transpose()
    }

    pub(super) fn list(&self, key: &str) -> Result<&'a [Value], SettingsError> {
        match self.find(key) {
            None | Some(Value::Null) => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(wrong(&self.path_of(key), "must be a list, [ … ]")),
        }
    }

    pub(super) fn text(&self, key: &str) -> Result<&'a str, SettingsError> {
        match self.find(key) {
            None | Some(Value::Null) => Ok(""),
            Some(Value::String(text)) => Ok(text),
            Some(_) => Err(wrong(&self.path_of(key), "must be a text in quotes")),
        }
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, SettingsError> {
        match self.find(key) {
            None | Some(Value::Null) => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(_) => Err(wrong(&self.path_of(key), "must be true or false")),
        }
    }

    pub(super) fn unsigned(&self, key: &str) -> Result<u32, SettingsError> {
        self.number(
            key,
            "must be a whole number from 0 to 4294967295",
            |value| value.as_u64().and_then(|number| u32::try_from(number).ok()),
        )
    }

    pub(super) fn signed(&self, key: &str) -> Result<i32, SettingsError> {
        let wanted = "must be a whole number from -2147483648 to 2147483647";
        self.number(key, wanted, |value| {
            value.as_i64().and_then(|number| i32::try_from(number).ok())
        })
    }

    pub(super) fn float(&self, key: &str) -> Result<f64, SettingsError> {
        self.number(key, "must be a number", Value::as_f64)
    }

    fn number<N: Default>(
        &self,
        key: &str,
        wanted: &str,
        read: impl Fn(&Value) -> Option<N>,
    ) -> Result<N, SettingsError> {
        match self.find(key) {
            None | Some(Value::Null) => Ok(N::default()),
            Some(value) => read(value).ok_or_else(|| wrong(&self.path_of(key), wanted)),
        }
    }
}
