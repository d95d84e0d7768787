//! The rights of files and folders that are their owner's alone: POSIX systems have them, on
//! others these functions do nothing.

#[cfg(unix)]
mod system {
    use std::fs::{DirBuilder, File, OpenOptions, Permissions};
    use std::io;
    use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};

    /// What is made with these options is its owner's alone.
    pub(in crate::file) fn make_private(options: &mut OpenOptions) {
        options.mode(0o600);
    }

    /// What is made with this builder is its owner's alone.
    pub(in crate::file) fn make_private_folders(builder: &mut DirBuilder) {
        builder.mode(0o700);
    }

    /// Takes a file that was there before from everybody but its owner. What is no file of its
    /// own, as `/dev/stdout`, is not taken from anybody.
    pub(in crate::file) fn take_from_others(file: &File) -> io::Result<()> {
        if file.metadata()?.is_file() {
            file.set_permissions(Permissions::from_mode(0o600))?;
        }
        Ok(())
    }
}

#[cfg(not(unix))]
mod system {
    use std::fs::{DirBuilder, File, OpenOptions};
    use std::io;

    pub(in crate::file) fn make_private(_: &mut OpenOptions) {}

    pub(in crate::file) fn make_private_folders(_: &mut DirBuilder) {}

    pub(in crate::file) fn take_from_others(_: &File) -> io::Result<()> {
        Ok(())
    }
}

pub(super) use system::{make_private, make_private_folders, take_from_others};
