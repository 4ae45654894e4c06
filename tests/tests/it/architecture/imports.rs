//! Reads which files of a package use which others, from their source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Item, ItemMod, UseTree, Visibility};

/// A module or an item, as the segments of its path without `crate`.
type ItemPath = Vec<String>;

/// The modules of a package, and what they name.
#[derive(Default)]
pub(super) struct Sources {
    /// The file of each module. Inline modules are in the file of their parent.
    files: BTreeMap<ItemPath, PathBuf>,
    /// What each module imports, by the name in the module. Re-exports are among them.
    imports: BTreeMap<ItemPath, BTreeMap<String, ItemPath>>,
    /// Names that a module re-exports.
    reexports: BTreeSet<(ItemPath, String)>,
    /// Paths of at least two segments that the code of each module names.
    named: Vec<(ItemPath, ItemPath)>,
}

impl Sources {
    /// Reads all files below a `src` directory, without tests.
    pub(super) fn read(src: &Path) -> Self {
        let mut sources = Self::default();
        let has_lib = src.join("lib.rs").exists();
        let mut directories = vec![src.to_owned()];
        while let Some(directory) = directories.pop() {
            for entry in fs::read_dir(directory).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    directories.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let module = module_of(src, &path);
                    let is_test = module.last().is_some_and(|name| name == "tests" || name.ends_with("_tests"));
                    let is_second_root = has_lib && path == src.join("main.rs");
                    if !is_test && !is_second_root {
                        let text = fs::read_to_string(&path).expect("UTF-8");
                        sources.add(&module, &path, syn::parse_file(&text).expect("Rust").items);
                    }
                }
            }
        }
        sources
    }

    fn add(&mut self, module: &ItemPath, file: &Path, items: Vec<Item>) {
        self.files.insert(module.clone(), file.to_owned());
        for item in items {
            if is_for_tests(&item) {
                continue;
            }
            #[expect(clippy::wildcard_enum_match_arm, reason = "all other items are code")]
            match item {
                Item::Use(item) => {
                    let mut leaves = Vec::new();
                    flatten(&item.tree, &mut Vec::new(), &mut leaves);
                    for (name, path) in leaves {
                        if matches!(item.vis, Visibility::Inherited) {
                            self.named.push((module.clone(), path.clone()));
                        } else {
                            self.reexports.insert((module.clone(), name.clone()));
                        }
                        self.imports.entry(module.clone()).or_default().insert(name, path);
                    }
                }
                Item::Mod(ItemMod { ident, content: Some((_, items)), .. }) => {
                    let inner: ItemPath = module.iter().cloned().chain([ident.to_string()]).collect();
                    self.add(&inner, file, items);
                }
                Item::Mod(_) => {}
                item => self.scan(module, item.to_token_stream()),
            }
        }
    }

    /// Adds the paths in code, and in the arguments of macros.
    fn scan(&mut self, module: &ItemPath, tokens: TokenStream) {
        let mut path: ItemPath = Vec::new();
        let mut colons = 0;
        let mut ended = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 {
                        ended.push(std::mem::take(&mut path));
                    }
                    path.push(ident.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    ended.push(std::mem::take(&mut path));
                    colons = 0;
                    self.scan(module, group.stream());
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {
                    ended.push(std::mem::take(&mut path));
                    colons = 0;
                }
            }
        }
        ended.push(path);
        self.named.extend(ended.into_iter().filter(|path| path.len() > 1).map(|path| (module.clone(), path)));
    }

    /// The files of the package.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        self.files.values().map(PathBuf::as_path)
    }

    /// The other files of the package that each file uses, with a path by which it does.
    pub(super) fn uses(&self) -> BTreeMap<&Path, BTreeMap<&Path, String>> {
        let mut uses: BTreeMap<&Path, BTreeMap<&Path, String>> = BTreeMap::new();
        for (module, path) in &self.named {
            let (user, Some(used)) = (&*self.files[module], self.definition(module, path, 0)) else { continue };
            if user != used {
                uses.entry(user).or_default().entry(used).or_insert_with(|| path.join("::"));
            }
        }
        uses
    }

    /// The file that defines what a path names. `None` for other packages.
    fn definition(&self, module: &[String], path: &[String], depth: usize) -> Option<&Path> {
        // Longer chains of re-exports do not exist, but an import may have the name of what it imports.
        if depth > 8 {
            return None;
        }
        let (first, mut rest) = path.split_first()?;
        let mut at: ItemPath = match first.as_str() {
            "crate" => Vec::new(),
            "self" => module.to_vec(),
            "super" => module.split_last()?.1.to_vec(),
            name => match self.imports.get(module).and_then(|imports| imports.get(name)) {
                Some(import) if import != path => {
                    let path: ItemPath = import.iter().chain(rest).cloned().collect();
                    return self.definition(module, &path, depth + 1);
                }
                _ => {
                    let child: ItemPath = module.iter().cloned().chain([name.to_owned()]).collect();
                    if !self.files.contains_key(&child) {
                        return None;
                    }
                    child
                }
            },
        };
        while let Some((next, after)) = rest.split_first() {
            let child: ItemPath = at.iter().cloned().chain([next.clone()]).collect();
            if next == "super" {
                at.pop();
            } else if self.files.contains_key(&child) {
                at = child;
            } else if self.reexports.contains(&(at.clone(), next.clone())) {
                let import = &self.imports[&at][next];
                let path: ItemPath = import.iter().chain(after).cloned().collect();
                return self.definition(&at, &path, depth + 1).or(self.files.get(&at).map(PathBuf::as_path));
            } else {
                break;
            }
            rest = after;
        }
        self.files.get(&at).map(PathBuf::as_path)
    }
}

/// The path of the module in a file.
fn module_of(src: &Path, file: &Path) -> ItemPath {
    let path = file.strip_prefix(src).expect("below src").with_extension("");
    let mut module: ItemPath = path.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|name| name == "mod") || module == ["lib"] || module == ["main"] {
        module.pop();
    }
    module
}

fn is_for_tests(item: &Item) -> bool {
    #[expect(clippy::wildcard_enum_match_arm, reason = "other items are never for tests only")]
    let attributes = match item {
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| attribute.to_token_stream().to_string().replace(' ', "") == "#[cfg(test)]")
}

/// The leaves of a `use` declaration: the name in the module, and the whole path.
fn flatten(tree: &UseTree, prefix: &mut ItemPath, leaves: &mut Vec<(String, ItemPath)>) {
    let with = |prefix: &ItemPath, name: &str| prefix.iter().cloned().chain([name.to_owned()]).collect::<ItemPath>();
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            flatten(&path.tree, prefix, leaves);
            prefix.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            leaves.push((prefix.last().cloned().unwrap_or_default(), prefix.clone()));
        }
        UseTree::Name(name) => leaves.push((name.ident.to_string(), with(prefix, &name.ident.to_string()))),
        UseTree::Rename(rename) => leaves.push((rename.rename.to_string(), with(prefix, &rename.ident.to_string()))),
        UseTree::Glob(_) => leaves.push(("*".to_owned(), prefix.clone())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, prefix, leaves)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_follows_imports_and_reexports() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("lib.rs", "mod a; mod b; mod c;");
        write("a/mod.rs", "mod inner; pub use inner::Thing;");
        write("a/inner.rs", "pub struct Thing; fn f() { println!(\"{}\", crate::c::NUMBER) }");
        write("b.rs", "use crate::a::{self, Thing as It}; fn f(_: It) { a::Thing }");
        write("c.rs", "pub const NUMBER: u8 = 1; #[cfg(test)] mod tests { use crate::b; }");
        let sources = Sources::read(directory.path());
        let uses: Vec<(&str, &str)> = sources
            .uses()
            .iter()
            .flat_map(|(user, used)| used.keys().map(|used| (stem(user), stem(used))))
            .filter(|(_, used)| *used != "mod")
            .collect();
        assert_eq!(uses, [("inner", "c"), ("b", "inner")]);
    }

    fn stem(path: &Path) -> &str {
        path.file_stem().unwrap().to_str().unwrap()
    }
}
