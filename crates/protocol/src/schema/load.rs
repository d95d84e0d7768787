//! From files to descriptors.

use std::path::{Path, PathBuf};

use lagometer_units::{MOST_SETTINGS, read_file, read_text_file};
use prost_reflect::DescriptorPool;
use protox::Compiler;
use protox::file::{
    ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver,
};

use super::SchemaError;

/// Descriptors of the bundled files, written when this crate was built.
const BUNDLED_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/bundled.binpb"));

/// The bundled files themselves, for others to import.
const BUNDLED_FILES: [(&str, &str); 8] = [
    ("channeld.proto", include_str!("../../proto/channeld.proto")),
    (
        "unity_common.proto",
        include_str!("../../proto/unity_common.proto"),
    ),
    (
        "unreal_common.proto",
        include_str!("../../proto/unreal_common.proto"),
    ),
    ("tps.proto", include_str!("../../proto/tps.proto")),
    ("chat.proto", include_str!("../../proto/chat.proto")),
    ("tanks.proto", include_str!("../../proto/tanks.proto")),
    ("replay.proto", include_str!("../../proto/replay.proto")),
    (
        "lagometer/merge.proto",
        include_str!("../../proto/lagometer/merge.proto"),
    ),
];

/// Finds the bundled files under any folder, since games import them from
/// wherever their build keeps them (`pkg/unrealpb/unreal_common.proto`).
struct BundledResolver;

impl FileResolver for BundledResolver {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        BUNDLED_FILES
            .iter()
            .find(|(bundled, _)| {
                name.strip_suffix(bundled)
                    .is_some_and(|folder| folder.is_empty() || folder.ends_with('/'))
            })
            .map_or_else(
                || Err(protox::Error::file_not_found(name)),
                |(_, source)| File::from_source(name, source),
            )
    }
}

/// Finds files in a folder, as protox's own resolver does, but reads none that
/// never ends.
struct FolderResolver {
    folder: PathBuf,
    names: IncludeFileResolver,
}

impl FolderResolver {
    fn new(folder: PathBuf) -> Self {
        Self {
            names: IncludeFileResolver::new(folder.clone()),
            folder,
        }
    }
}

impl FileResolver for FolderResolver {
    fn resolve_path(&self, path: &Path) -> Option<String> {
        self.names.resolve_path(path)
    }

    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        let path = self.folder.join(name);
        match read_text_file(&path, MOST_SETTINGS) {
            Ok(source) => File::from_source(name, &source),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(protox::Error::file_not_found(name))
            }
            Err(error) => Err(protox::Error::new(std::io::Error::new(
                error.kind(),
                format!("{}: {error}", path.display()),
            ))),
        }
    }
}

/// Gives one file from memory.
struct SourceResolver {
    name: String,
    source: String,
}

impl FileResolver for SourceResolver {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        if name == self.name {
            File::from_source(name, &self.source)
        } else {
            Err(protox::Error::file_not_found(name))
        }
    }
}

pub(super) fn bundled_pool() -> DescriptorPool {
    DescriptorPool::decode(BUNDLED_SET).expect("the bundled descriptors are sound")
}

pub(super) fn pool_of_source(name: &str, source: &str) -> Result<DescriptorPool, SchemaError> {
    let mut resolver = ChainFileResolver::new();
    resolver.add(SourceResolver {
        name: name.to_owned(),
        source: source.to_owned(),
    });
    compile(resolver, &[name])
}

/// One pool for all `.proto` files together, which may import each other, and
/// one for each descriptor set.
pub(super) fn pools_of_files(
    files: &[impl AsRef<Path>],
    includes: &[impl AsRef<Path>],
) -> Result<Vec<DescriptorPool>, SchemaError> {
    let (protos, sets): (Vec<&Path>, Vec<&Path>) = files
        .iter()
        .map(AsRef::as_ref)
        .partition(|path| path.extension().is_some_and(|ext| ext == "proto"));

    let mut pools = Vec::new();
    if !protos.is_empty() {
        let mut resolver = ChainFileResolver::new();
        for include in includes {
            resolver.add(FolderResolver::new(include.as_ref().to_owned()));
        }
        for path in &protos {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            resolver.add(FolderResolver::new(
                folder.unwrap_or(Path::new(".")).to_owned(),
            ));
        }
        pools.push(compile(resolver, &protos)?);
    }
    for path in sets {
        let name = path.display().to_string();
        let bytes = read_file(path, MOST_SETTINGS).map_err(|source| SchemaError::Unreadable {
            path: name.clone(),
            source,
        })?;
        pools.push(DescriptorPool::decode(&*bytes).map_err(|error| {
            SchemaError::DescriptorSet {
                path: name,
                reason: error.to_string(),
            }
        })?);
    }
    Ok(pools)
}

fn compile(
    mut resolver: ChainFileResolver,
    files: &[impl AsRef<Path>],
) -> Result<DescriptorPool, SchemaError> {
    resolver.add(BundledResolver);
    resolver.add(GoogleFileResolver::new());
    let mut compiler = Compiler::with_file_resolver(resolver);
    compiler.include_imports(true);
    compiler
        .open_files(files)
        .map_err(|error| SchemaError::Proto(one_line(&error)))?;
    Ok(compiler.descriptor_pool())
}

/// The compiler's message with the place it points at, in one line. Only its
/// debugging form has line and column.
fn one_line(error: &protox::Error) -> String {
    let text = format!("{error:?}").replace('\n', " ");
    match error.file() {
        Some(file) if !text.contains(file) => format!("{file}: {text}"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::schema::Schema;

    #[test]
    fn every_bundled_file_is_in_the_bundled_set() {
        let pool = bundled_pool();
        for (name, source) in BUNDLED_FILES {
            let bundled = pool.get_file_by_name(name);
            let compiled = pool_of_source(
                "probe.proto",
                &format!("syntax = \"proto3\"; import \"some/folder/{name}\";"),
            );
            assert!(compiled.is_ok(), "{name} can be imported: {compiled:?}");
            if name != "lagometer/merge.proto" {
                assert!(bundled.is_some(), "{name} is in the set");
            }
            assert!(!source.is_empty());
        }
    }

    #[test]
    fn a_mistake_is_reported_in_one_line_with_its_place() {
        let error = pool_of_source(
            "game.proto",
            "syntax = \"proto3\";\nmessage A {\n  strin x = 1;\n}\n",
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("game.proto"), "{error}");
        assert!(error.contains(":3:"), "{error}");
        assert!(!error.contains('\n'), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn types_and_imports_that_never_end_are_refused() {
        let folder = std::env::temp_dir().join(format!("lagometer-endless-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("/dev/zero", folder.join("endless.proto")).unwrap();
        let importing = "syntax = \"proto3\"; import \"endless.proto\";";
        fs::write(folder.join("game.proto"), importing).unwrap();
        let refused = |path: &Path| {
            let no_folder: [&Path; 0] = [];
            let error = Schema::empty().add_files(&[path], &no_folder).unwrap_err();
            error.to_string()
        };
        for path in [
            folder.join("endless.proto"),
            folder.join("game.proto"),
            "/dev/zero".into(),
        ] {
            let error = refused(&path);
            assert!(error.contains("the most that is read"), "{error}");
        }
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_and_sets_are_read_from_disk() {
        let folder = std::env::temp_dir().join(format!("lagometer-schema-{}", std::process::id()));
        fs::create_dir_all(folder.join("parts")).unwrap();
        fs::write(
            folder.join("game.proto"),
            "syntax = \"proto3\"; package game; import \"part.proto\"; import \"pkg/unrealpb/unreal_common.proto\"; \
             message World { map<uint32, Part> parts = 1; unrealpb.FVector at = 2; }",
        )
        .unwrap();
        fs::write(
            folder.join("parts/part.proto"),
            "syntax = \"proto3\"; package game; message Part { string name = 1; }",
        )
        .unwrap();

        let mut schema = Schema::empty();
        schema
            .add_files(&[folder.join("game.proto")], &[folder.join("parts")])
            .unwrap();
        assert!(schema.find("game.World").is_some());

        let mut compiler = Compiler::new([&folder, &folder.join("parts")]).unwrap();
        compiler.open_file(folder.join("parts/part.proto")).unwrap();
        fs::write(
            folder.join("set.binpb"),
            compiler.encode_file_descriptor_set(),
        )
        .unwrap();
        let mut schema = Schema::empty();
        let no_includes: [&Path; 0] = [];
        schema
            .add_files(&[folder.join("set.binpb")], &no_includes)
            .unwrap();
        assert!(schema.find("game.Part").is_some());

        fs::write(folder.join("set.binpb"), [0xff; 9]).unwrap();
        let error = schema
            .add_files(&[folder.join("set.binpb")], &no_includes)
            .unwrap_err()
            .to_string();
        assert!(error.contains("set.binpb"), "{error}");
        assert!(
            schema
                .add_files(&[folder.join("none.binpb")], &no_includes)
                .is_err()
        );
        assert!(
            schema
                .add_files(&[folder.join("none.proto")], &no_includes)
                .is_err()
        );
        fs::remove_dir_all(&folder).unwrap();
    }
}
