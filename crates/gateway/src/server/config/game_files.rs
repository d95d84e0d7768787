//! The files that the settings name: state machines, channel types, grids and
//! secrets, and what holds where one is missing.

use std::io::ErrorKind;
use std::path::Path;

use lagometer_units::{MOST_SETTINGS, read_text_file};

use crate::core::{ChannelTypes, SettingsError};

use super::file::FileConfig;
use super::resolve::ConfigError;
use super::stock;

impl FileConfig {
    /// Ticks, intervals and rights. channeld goes on without a file that is not
    /// there, and so do we where its own option names it.
    pub(super) fn channel_types(
        &self,
        warnings: &mut Vec<String>,
    ) -> Result<ChannelTypes, ConfigError> {
        let path = self.channels.settings.as_deref();
        match settings(path, ChannelTypes::from_json) {
            Err(ConfigError::Read { path, why })
                if self.channels.settings_may_be_missing && why.kind() == ErrorKind::NotFound =>
            {
                warnings.push(format!(
                    "{}: there is no such file: channels tick as channeld's do without it, and \
                     nobody acts for others in them",
                    path.display()
                ));
                Ok(ChannelTypes::without_file())
            }
            other => Ok(other?.unwrap_or_else(|| {
                if self.dev {
                    ChannelTypes::open()
                } else {
                    ChannelTypes::default()
                }
            })),
        }
    }
}

/// Reads a game's settings file, if one is named.
pub(super) fn settings<T>(
    path: Option<&Path>,
    parse: impl FnOnce(&str) -> Result<T, SettingsError>,
) -> Result<Option<T>, ConfigError> {
    let Some(path) = path else {
        return Ok(None);
    };
    let text = match (read(path), stock::file(path)) {
        (Ok(text), _) => text,
        (Err(_), Some(text)) => text.to_owned(),
        (Err(error), None) => return Err(error),
    };
    parse(&text).map(Some).map_err(|why| ConfigError::Settings {
        path: path.to_owned(),
        why,
    })
}

pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    read_text_file(path, MOST_SETTINGS).map_err(|why| ConfigError::Read {
        path: path.to_owned(),
        why,
    })
}
