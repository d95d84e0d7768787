//! The kernels that were built: a folder for each in the user's cache.
//!
//! A kernel appears whole, by the renaming of a folder. Whoever builds or
//! removes holds the lock, so that a folder under construction that nobody
//! holds the lock for is a leftover.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::build::check_machine;
use crate::error::{Doing as _, Error};
use crate::source::is_from;

/// The name of a kernel's program within its folder.
const PROGRAM: &str = "linux";
/// The name of the file with what is known of a kernel.
const RECORD: &str = "kernel.json";
/// The first version that can do without tracing (`seccomp=on`).
const UNTRACED_FROM: (u32, u32) = (6, 16);
/// How the name of a folder under construction begins.
const UNDER_CONSTRUCTION: &str = ".building";

/// Where kernels are kept.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

/// A kernel that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its folder.
    folder: PathBuf,
    /// What is known of it.
    record: Record,
}

/// What is known of a kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its version, as in `6.1.192`.
    pub version: String,
    /// Its tick, in Hz.
    pub hz: u16,
    /// A digest of its configuration and of what was changed in its source:
    /// sixteen hexadecimal digits.
    pub configuration: String,
    /// The tarball or tree it was built from.
    pub source: String,
    /// When it was built, RFC 3339 in UTC.
    pub built: String,
    /// How long that took, in seconds.
    pub build_s: u64,
}

impl Record {
    /// What the kernel is called: version, tick and configuration.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}-hz{}-{}", self.version, self.hz, self.configuration)
    }
}

impl Kernel {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        self.record.name()
    }

    /// What is known of it.
    #[must_use]
    pub const fn record(&self) -> &Record {
        &self.record
    }

    /// Whether it can do without tracing the guest's processes, which makes their
    /// system calls cheaper.
    #[must_use]
    pub fn does_without_tracing(&self) -> bool {
        is_from(&self.record.version, UNTRACED_FROM)
    }

    /// Its folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The program itself.
    #[must_use]
    pub fn program(&self) -> PathBuf {
        self.folder.join(PROGRAM)
    }

    /// The bytes of all its files.
    #[must_use]
    pub fn size_bytes(&self) -> u64 {
        let Ok(entries) = fs::read_dir(&self.folder) else {
            return 0;
        };
        entries
            .filter_map(|entry| entry.ok()?.metadata().ok())
            .map(|metadata| metadata.len())
            .sum()
    }
}

impl Cache {
    /// The user's: `lagometer/kernels` in `$XDG_CACHE_HOME`, or in `.cache` of
    /// `$HOME`.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] where no kernel can run; [`Error::NoCacheFolder`] where
    /// neither is an absolute path.
    pub fn of_user() -> Result<Self, Error> {
        check_machine(env::consts::OS, env::consts::ARCH)?;
        let xdg = env::var_os("XDG_CACHE_HOME");
        let home = env::var_os("HOME");
        let folder = cache_folder(xdg.as_deref(), home.as_deref()).ok_or(Error::NoCacheFolder)?;
        Ok(Self::at(folder.join("lagometer/kernels")))
    }

    /// The kernels in `folder`, which need not exist yet.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Where they are.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// All kernels, those built last at the end.
    ///
    /// # Errors
    ///
    /// [`Error::System`] if the folder is there but cannot be read.
    pub fn kernels(&self) -> Result<Vec<Kernel>, Error> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.doing(format!("reading {}", self.folder.display()))?,
        };
        let mut kernels: Vec<Kernel> = entries
            .filter_map(|entry| self.kernel(&entry.ok()?.file_name()))
            .collect();
        kernels.sort_by(|a, b| (&a.record.built, a.name()).cmp(&(&b.record.built, b.name())));
        Ok(kernels)
    }

    /// The kernel called `name`, or the one that was built last.
    ///
    /// # Errors
    ///
    /// [`Error::NoKernel`] or [`Error::UnknownKernel`] if there is none.
    pub fn find(&self, name: Option<&str>) -> Result<Kernel, Error> {
        let missing = || {
            name.map_or(Error::NoKernel, |name| Error::UnknownKernel {
                name: name.to_owned(),
            })
        };
        self.kernels()?
            .into_iter()
            .rfind(|kernel| name.is_none_or(|name| kernel.is_called(name)))
            .ok_or_else(missing)
    }

    /// Removes the kernels called `name`, or all; returns them.
    ///
    /// # Errors
    ///
    /// [`Error::UnknownKernel`] if a name is given and there is none of it;
    /// [`Error::System`] where the system refuses.
    pub fn remove(&self, name: Option<&str>) -> Result<Vec<Kernel>, Error> {
        if !self.folder.exists() && name.is_none() {
            return Ok(Vec::new());
        }
        if let Some(name) = name {
            self.find(Some(name))?;
        }
        let lock = self.lock(&mut || {})?;
        let mut removed = self.kernels()?;
        removed.retain(|kernel| name.is_none_or(|name| kernel.is_called(name)));
        for kernel in &removed {
            lock.discard(&kernel.folder)?;
        }
        Ok(removed)
    }

    /// Takes the lock; calls `waiting` once if somebody else has it.
    pub(crate) fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Lock<'_>, Error> {
        fs::create_dir_all(&self.folder).doing(format!("making {}", self.folder.display()))?;
        let path = self.folder.join(".lock");
        let file = File::create(&path).doing(format!("writing {}", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(fs::TryLockError::WouldBlock) => {
                waiting();
                file.lock().doing(format!("locking {}", path.display()))?;
            }
            Err(fs::TryLockError::Error(source)) => {
                return Err(source).doing(format!("locking {}", path.display()));
            }
        }
        let lock = Lock {
            cache: self,
            _file: file,
        };
        lock.discard_leftovers()?;
        Ok(lock)
    }

    /// The kernel in the folder called `name`, if there is a whole one.
    fn kernel(&self, name: &OsStr) -> Option<Kernel> {
        let folder = self.folder.join(name);
        let text = fs::read_to_string(folder.join(RECORD)).ok()?;
        let record: Record = serde_json::from_str(&text).ok()?;
        // One under construction is in a folder that is called otherwise.
        let is_whole = name == record.name().as_str() && folder.join(PROGRAM).is_file();
        is_whole.then_some(Kernel { folder, record })
    }
}

impl Kernel {
    /// Whether it goes by this name: the whole one, or its version.
    fn is_called(&self, name: &str) -> bool {
        self.name() == name || self.record.version == name
    }
}

/// The right to change what is in the cache.
pub(crate) struct Lock<'a> {
    cache: &'a Cache,
    _file: File,
}

impl Lock<'_> {
    /// A new folder to build a kernel in.
    pub(crate) fn site(&self) -> Result<Site<'_>, Error> {
        let folder = self.cache.folder.join(UNDER_CONSTRUCTION);
        fs::create_dir(&folder).doing(format!("making {}", folder.display()))?;
        Ok(Site { lock: self, folder })
    }

    /// Removes what builds have left that were killed.
    fn discard_leftovers(&self) -> Result<(), Error> {
        let folder = &self.cache.folder;
        let entries = fs::read_dir(folder).doing(format!("reading {}", folder.display()))?;
        for entry in entries.filter_map(Result::ok) {
            if entry
                .file_name()
                .to_string_lossy()
                .starts_with(UNDER_CONSTRUCTION)
            {
                let path = entry.path();
                fs::remove_dir_all(&path).doing(format!("removing {}", path.display()))?;
            }
        }
        Ok(())
    }

    /// Removes a kernel: first its name, then its files.
    fn discard(&self, folder: &Path) -> Result<(), Error> {
        let aside = self.cache.folder.join(format!("{UNDER_CONSTRUCTION}-old"));
        fs::rename(folder, &aside).doing(format!("removing {}", folder.display()))?;
        fs::remove_dir_all(&aside).doing(format!("removing {}", aside.display()))
    }
}

/// A folder to build a kernel in, which goes when it is dropped.
pub(crate) struct Site<'a> {
    lock: &'a Lock<'a>,
    folder: PathBuf,
}

impl Site<'_> {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a kernel of `program` and `beside`, in place of one of the same
    /// name.
    pub(crate) fn finish(
        self,
        record: Record,
        program: &Path,
        beside: &[&Path],
    ) -> Result<Kernel, Error> {
        let place = |from: &Path, to: PathBuf| {
            fs::rename(from, &to).doing(format!("moving {} to {}", from.display(), to.display()))
        };
        let new = self.folder.join("kernel");
        fs::create_dir(&new).doing(format!("making {}", new.display()))?;
        place(program, new.join(PROGRAM))?;
        for file in beside {
            let name = file.file_name().unwrap_or_default();
            let name = name.to_string_lossy();
            place(file, new.join(name.trim_start_matches('.')))?;
        }
        let text = serde_json::to_string_pretty(&record)
            .map_err(io::Error::other)
            .doing("describing the kernel")?;
        fs::write(new.join(RECORD), text + "\n").doing("describing the kernel")?;
        let folder = self.lock.cache.folder.join(record.name());
        if folder.exists() {
            self.lock.discard(&folder)?;
        }
        place(&new, folder.clone())?;
        Ok(Kernel { folder, record })
    }
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        // What remains is a leftover, which the next who has the lock removes.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The user's cache folder; relative paths count as not set, as the XDG base
/// directory specification has it.
fn cache_folder(xdg: Option<&OsStr>, home: Option<&OsStr>) -> Option<PathBuf> {
    let absolute = |path: PathBuf| path.is_absolute().then_some(path);
    xdg.map(PathBuf::from).and_then(absolute).or_else(|| {
        home.map(|home| Path::new(home).join(".cache"))
            .and_then(absolute)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(version: &str, built: &str) -> Record {
        Record {
            version: version.to_owned(),
            hz: 1000,
            configuration: "0123456789abcdef".to_owned(),
            source: "/usr/src/linux.tar.xz".to_owned(),
            built: built.to_owned(),
            build_s: 210,
        }
    }

    fn build(cache: &Cache, version: &str, built: &str) -> Kernel {
        let lock = cache.lock(&mut || {}).unwrap();
        let site = lock.site().unwrap();
        let program = site.folder().join("vmlinux");
        let config = site.folder().join(".config");
        fs::write(&program, version).unwrap();
        fs::write(&config, "CONFIG_UML=y").unwrap();
        site.finish(record(version, built), &program, &[&config])
            .unwrap()
    }

    #[test]
    fn kernels_are_found_by_name_by_version_and_by_age() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("a b'c"));
        assert!(cache.kernels().unwrap().is_empty());
        assert!(matches!(cache.find(None), Err(Error::NoKernel)));
        let newer = build(&cache, "6.1.5", "2026-02-02T00:00:00Z");
        let older = build(&cache, "6.12.1", "2026-01-01T00:00:00Z");
        assert_eq!(cache.kernels().unwrap(), [older.clone(), newer.clone()]);
        assert_eq!(cache.find(None).unwrap(), newer);
        assert_eq!(cache.find(Some("6.12.1")).unwrap(), older);
        assert_eq!(cache.find(Some(&newer.name())).unwrap(), newer);
        assert_eq!(fs::read_to_string(newer.program()).unwrap(), "6.1.5");
        assert!(newer.size_bytes() > 10);
        let untraced = build(&cache, "6.16.0", "2026-01-03T00:00:00Z");
        let which = [&older, &newer, &untraced].map(Kernel::does_without_tracing);
        assert_eq!(which, [false, false, true]);
    }

    #[test]
    fn a_kernel_built_again_replaces_the_old() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        build(&cache, "6.1.5", "2026-01-01T00:00:00Z");
        let again = build(&cache, "6.1.5", "2026-02-02T00:00:00Z");
        assert_eq!(cache.kernels().unwrap(), [again]);
    }

    #[test]
    fn an_interrupted_build_leaves_nothing_and_a_killed_one_is_cleared_away() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let leftover = folder.path().join(UNDER_CONSTRUCTION);
        {
            let lock = cache.lock(&mut || {}).unwrap();
            let site = lock.site().unwrap();
            fs::write(site.folder().join("half"), "").unwrap();
        }
        assert!(!leftover.exists());
        fs::create_dir(&leftover).unwrap();
        fs::write(leftover.join(RECORD), "{").unwrap();
        assert!(cache.kernels().unwrap().is_empty());
        drop(cache.lock(&mut || {}).unwrap());
        assert!(!leftover.exists());
    }

    #[test]
    fn of_two_who_build_one_waits_until_the_other_is_done() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path());
        let lock = cache.lock(&mut || {}).unwrap();
        let (notify, waits) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| {
                let _lock = cache.lock(&mut || notify.send(()).unwrap()).unwrap();
                cache.kernels().unwrap().len()
            });
            waits.recv().unwrap();
            let site = lock.site().unwrap();
            let program = site.folder().join("vmlinux");
            fs::write(&program, "").unwrap();
            site.finish(record("6.1.5", "2026-01-01T00:00:00Z"), &program, &[])
                .unwrap();
            drop(lock);
            assert_eq!(second.join().unwrap(), 1);
        });
    }

    #[test]
    fn removing_takes_what_was_named_or_everything() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path().join("kernels"));
        assert!(cache.remove(None).unwrap().is_empty());
        assert!(!cache.folder().exists());
        let one = build(&cache, "6.1.5", "2026-01-01T00:00:00Z");
        let other = build(&cache, "6.12.1", "2026-01-02T00:00:00Z");
        assert!(matches!(
            cache.remove(Some("5.0")),
            Err(Error::UnknownKernel { .. })
        ));
        assert_eq!(cache.remove(Some("6.1.5")).unwrap(), [one]);
        assert_eq!(cache.remove(None).unwrap(), [other]);
        assert!(cache.kernels().unwrap().is_empty());
    }

    #[test]
    fn the_cache_is_where_the_specification_says() {
        let os = |text: &'static str| Some(OsStr::new(text));
        let found = |xdg, home| cache_folder(xdg, home);
        assert_eq!(found(os("/x"), os("/h")), Some("/x".into()));
        assert_eq!(found(os("relative"), os("/h")), Some("/h/.cache".into()));
        assert_eq!(found(os(""), os("/h")), Some("/h/.cache".into()));
        assert_eq!(found(None, None), None);
    }
}
