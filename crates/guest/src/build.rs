//! From a source to a kernel in the cache.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Instant, SystemTime};

use crate::cache::{Cache, Kernel, Record, Site};
use crate::command::Log;
use crate::edits;
use crate::error::{Doing as _, Error};
use crate::recipe::Recipe;
use crate::source::Source;
use crate::tools;

/// What is to be built.
#[derive(Clone, Debug)]
pub struct Request {
    /// A tarball or a tree; the distribution's package if none is named.
    pub source: Option<PathBuf>,
    /// The kernel's tick, one of [`HZ_CHOICES`](crate::HZ_CHOICES).
    pub hz: u16,
}

/// How far a build has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Somebody else is building; it goes on when they are done.
    Waiting,
    /// Packages are being installed.
    Installing(String),
    /// The source is being unpacked or copied.
    Unpacking(PathBuf),
    /// The kernel of this version is being configured.
    Configuring(String),
    /// So many files have been compiled.
    Compiling(u32),
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Built {
    /// The kernel.
    pub kernel: Kernel,
    /// It was there already.
    pub was_there: bool,
}

/// Builds a kernel, or finds that it is there already: what a user names as
/// source is always built anew, for it may have changed.
///
/// When `stop` becomes true the build ends and leaves nothing behind.
///
/// # Errors
///
/// [`Error`]: a wrong source, what the machine lacks, a failed build with its
/// log.
pub fn build(
    cache: &Cache,
    request: &Request,
    progress: &mut dyn FnMut(&Step),
    stop: &AtomicBool,
) -> Result<Built, Error> {
    check_machine(std::env::consts::OS, std::env::consts::ARCH)?;
    let asked = request.source.as_deref().map(Source::named).transpose()?;
    let recipe = Recipe { hz: request.hz };
    let lock = cache.lock(&mut || progress(&Step::Waiting))?;
    if asked.is_none()
        && let Some(kernel) = already_there(cache, recipe)?
    {
        return Ok(Built {
            kernel,
            was_there: true,
        });
    }
    let log = Log::new(cache.folder().join("build.log"))?;
    provide_tools(&log, asked.is_some(), progress, stop)?;
    let Some(source) = asked.or_else(Source::packaged) else {
        return Err(lacking(&tools::missing(&tools::search_path(), false)));
    };
    let mut record = Record {
        version: source.version()?,
        hz: recipe.hz,
        configuration: recipe.digest(),
        source: source.path().display().to_string(),
        built: String::new(),
        build_s: 0,
    };
    let began = Instant::now();
    let site = lock.site()?;
    compile(
        &site,
        &source,
        &record.version,
        recipe,
        &log,
        progress,
        stop,
    )?;
    record.build_s = began.elapsed().as_secs();
    record.built = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let tree = tree_of(&site);
    let kernel = site.finish(
        record,
        &tree.join("linux"),
        &[&tree.join(".config"), log.path()],
    )?;
    Ok(Built {
        kernel,
        was_there: false,
    })
}

/// The kernel that building from the distribution's package would come to, or
/// where there is no such package now, the last that was built by this recipe.
fn already_there(cache: &Cache, recipe: Recipe) -> Result<Option<Kernel>, Error> {
    let version = Source::packaged().and_then(|source| source.version().ok());
    let digest = recipe.digest();
    let is_the_one = |kernel: &Kernel| {
        let record = kernel.record();
        record.hz == recipe.hz
            && record.configuration == digest
            && version
                .as_ref()
                .is_none_or(|version| *version == record.version)
    };
    Ok(cache.kernels()?.into_iter().rfind(is_the_one))
}

/// Whether such a machine can run the kernel as a program.
pub(crate) fn check_machine(os: &'static str, arch: &'static str) -> Result<(), Error> {
    if (os, arch) == ("linux", "x86_64") {
        return Ok(());
    }
    Err(Error::Unsupported { os, arch })
}

/// Installs what is missing, where that is permitted.
fn provide_tools(
    log: &Log,
    has_source: bool,
    progress: &mut dyn FnMut(&Step),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let path = tools::search_path();
    let find = || tools::missing(&path, has_source || Source::packaged().is_some());
    let missing = find();
    if missing.packages.is_empty() {
        return Ok(());
    }
    if !tools::may_install(&path) {
        return Err(lacking(&missing));
    }
    progress(&Step::Installing(missing.packages.join(" ")));
    let run = |command| {
        log.run(
            "installing what the build needs",
            command,
            stop,
            &mut |_| {},
        )
    };
    if run(tools::installing(&missing.packages)).is_err() {
        // The list of packages may be old, or not there at all.
        run(tools::updating())?;
        run(tools::installing(&missing.packages))?;
    }
    let missing = find();
    if missing.packages.is_empty() {
        return Ok(());
    }
    Err(lacking(&missing))
}

fn lacking(missing: &tools::Missing) -> Error {
    Error::Missing {
        what: missing.what.join(", "),
        packages: missing.packages.join(" "),
    }
}

/// Where the source is while it is built.
fn tree_of(site: &Site<'_>) -> PathBuf {
    site.folder().join("tree")
}

/// Unpacks, edits, configures and compiles.
fn compile(
    site: &Site<'_>,
    source: &Source,
    version: &str,
    recipe: Recipe,
    log: &Log,
    progress: &mut dyn FnMut(&Step),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let tree = tree_of(site);
    progress(&Step::Unpacking(source.path().to_owned()));
    fs::create_dir(&tree).doing(format!("making {}", tree.display()))?;
    log.run(
        "unpacking the source",
        source.unpacking(&tree),
        stop,
        &mut |_| {},
    )?;
    progress(&Step::Configuring(version.to_owned()));
    let make = |targets: &[&str]| {
        let mut command = Command::new("make");
        command.current_dir(&tree).arg("ARCH=um").args(targets);
        // Nothing of the moment or the machine goes into the kernel.
        command.env("KBUILD_BUILD_TIMESTAMP", "1970-01-01");
        command.env("KBUILD_BUILD_USER", "lagometer");
        command.env("KBUILD_BUILD_HOST", "lagometer");
        command.env("KBUILD_BUILD_VERSION", "1");
        command
    };
    if matches!(source, Source::Tree(_)) {
        // Somebody's own tree may hold what was built there for other ends.
        log.run(
            "cleaning the copy of the source",
            make(&["mrproper"]),
            stop,
            &mut |_| {},
        )?;
    }
    edits::apply(&tree, recipe.hz)?;
    let fragment = site.folder().join("fragment");
    fs::write(&fragment, recipe.fragment()).doing(format!("writing {}", fragment.display()))?;
    let mut configure = make(&["allnoconfig"]);
    configure.env("KCONFIG_ALLCONFIG", &fragment);
    log.run("configuring the kernel", configure, stop, &mut |_| {})?;
    let configured = fs::read_to_string(tree.join(".config")).doing("reading the configuration")?;
    let missing = recipe.missing(&configured);
    if !missing.is_empty() {
        return Err(Error::Configuration {
            missing: missing.join(", "),
        });
    }
    let jobs = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut files = 0;
    progress(&Step::Compiling(files));
    log.run(
        "compiling the kernel",
        make(&["--jobs", &jobs.to_string(), "linux"]),
        stop,
        &mut |said| {
            let more = u32::try_from(said.matches("  CC ").count()).unwrap_or_default();
            if more > 0 {
                files += more;
                progress(&Step::Compiling(files));
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_systems_and_processors_are_refused_in_a_line() {
        assert!(check_machine("linux", "x86_64").is_ok());
        for (os, arch) in [("macos", "x86_64"), ("linux", "aarch64")] {
            let said = check_machine(os, arch).unwrap_err().to_string();
            assert!(
                said.contains(os) && said.contains(arch) && !said.contains('\n'),
                "{said}"
            );
        }
    }

    #[test]
    fn what_is_missing_is_said_with_the_command_that_mends_it() {
        let said = lacking(&tools::missing(&[], true)).to_string();
        assert!(
            said.contains("flex") && said.contains("apt-get install make gcc"),
            "{said}"
        );
    }
}
