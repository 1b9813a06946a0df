//! What one file's code says without its tests: modules, imports, mentions, functions, their tuples, public types.
//!
//! This is plain data, read once: what `syn` gives is bound to the thread that read it.

use std::collections::BTreeSet;

use syn::{
    Attribute, Ident, ImplItem, Item, ItemMod, Meta, TraitItem, UseTree, Visibility,
    ext::IdentExt,
    visit::{self, Visit},
};

use crate::{
    attributes::{attributes, is_test, names_of, path_of},
    tokens::{self, Of, Seen},
};

/// Segments of a path; a leading `::` is the first segment of one that says so.
pub(crate) type Path = Vec<String>;

/// A file's code.
#[derive(Debug, Default)]
pub(crate) struct Code {
    /// The file itself comes first; the others are modules with a body in it.
    pub(crate) scopes: Vec<Scope>,
    pub(crate) functions: Vec<Function>,
    pub(crate) tuples: Vec<TupleParameter>,
    pub(crate) types: Vec<PublicType>,
}

/// What is in a module, but not in modules in it.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    /// Its names from the file on; nothing for the file itself.
    pub(crate) inside: Path,
    /// Modules that have files of their own.
    pub(crate) files: Vec<ModuleFile>,
    pub(crate) imports: Vec<Import>,
    /// Names that it defines.
    pub(crate) items: BTreeSet<String>,
    /// Paths outside imports.
    pub(crate) mentions: Vec<Mention>,
}

/// `mod name;`
#[derive(Debug)]
pub(crate) struct ModuleFile {
    pub(crate) name: String,
    /// Out of its attribute.
    pub(crate) path: Option<String>,
    pub(crate) line: usize,
}

/// One name out of a `use`.
#[derive(Debug)]
pub(crate) struct Import {
    pub(crate) path: Path,
    /// What it is called here; nothing for all names that are there.
    pub(crate) name: Option<String>,
    /// Only this module and those in it see it.
    pub(crate) is_private: bool,
    pub(crate) line: usize,
}

/// A path somewhere in code.
#[derive(Debug)]
pub(crate) struct Mention {
    pub(crate) path: Path,
    pub(crate) line: usize,
}

/// A function with a body.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Of `fn`.
    pub(crate) line: usize,
    /// Of its closing brace.
    pub(crate) end: usize,
}

/// A parameter whose type is a tuple, or a reference to one; one of a closure is none.
#[derive(Debug)]
pub(crate) struct TupleParameter {
    /// The name of the function that takes it.
    pub(crate) function: String,
    pub(crate) line: usize,
}

/// A type, trait or alias that is `pub`.
#[derive(Debug)]
pub(crate) struct PublicType {
    pub(crate) name: String,
    pub(crate) line: usize,
}

impl Code {
    pub(crate) fn read(text: &str) -> syn::Result<Self> {
        let file = syn::parse_file(text)?;
        let mut reader = Reader { code: Self::default(), scope: 0 };
        reader.code.scopes.push(Scope { items: names_of(&file.items), ..Scope::default() });
        if !is_test(&file.attrs) {
            reader.visit_file(&file);
        }
        Ok(reader.code)
    }
}

struct Reader {
    code: Code,
    /// The one that is being read.
    scope: usize,
}

impl Reader {
    fn here(&mut self) -> &mut Scope {
        &mut self.code.scopes[self.scope]
    }

    fn public(&mut self, visibility: &Visibility, name: &Ident) {
        if matches!(visibility, Visibility::Public(_)) {
            self.code.types.push(PublicType { name: name.unraw().to_string(), line: line_of(name) });
        }
    }

    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (line, end) = (signature.fn_token.span.start().line, body.brace_token.span.close().end().line);
        self.code.functions.push(Function { name: signature.ident.to_string(), line, end });
    }

    fn tokens(&mut self, stream: proc_macro2::TokenStream, of: Of) {
        for (line, seen) in tokens::seen(stream, of) {
            match seen {
                Seen::Path(path) => self.here().mentions.push(Mention { path, line }),
                Seen::Function { name, end } => self.code.functions.push(Function { name, line, end }),
                Seen::PublicType(name) => self.code.types.push(PublicType { name, line }),
            }
        }
    }

    fn imports(&mut self, before: &[String], tree: &UseTree, is_private: bool) {
        let with = |name: &Ident| [before, &[name.unraw().to_string()]].concat();
        let (path, name, line) = match tree {
            UseTree::Path(path) => return self.imports(&with(&path.ident), &path.tree, is_private),
            UseTree::Group(group) => return group.items.iter().for_each(|tree| self.imports(before, tree, is_private)),
            UseTree::Glob(glob) => (before.to_vec(), None, glob.star_token.spans[0].start().line),
            UseTree::Name(name) => (with(&name.ident), Some(&name.ident), line_of(&name.ident)),
            UseTree::Rename(name) => (with(&name.ident), Some(&name.rename), line_of(&name.ident)),
        };
        // In a group, `self` is the module before it.
        let path =
            if path.len() > 1 && path.last().is_some_and(|last| last == "self") { before.to_vec() } else { path };
        let name = name.map(|name| name.unraw().to_string());
        let name = if name.as_deref() == Some("self") { path.last().cloned() } else { name };
        self.here().imports.push(Import { path, name, is_private, line });
    }

    fn module(&mut self, module: &ItemMod) {
        let name = module.ident.unraw().to_string();
        let Some((_, items)) = &module.content else {
            let path = module.attrs.iter().find_map(path_of);
            return self.here().files.push(ModuleFile { name, path, line: line_of(&module.ident) });
        };
        let mut inside = self.here().inside.clone();
        inside.push(name);
        let outer = self.scope;
        self.scope = self.code.scopes.len();
        self.code.scopes.push(Scope { inside, items: names_of(items), ..Scope::default() });
        items.iter().for_each(|item| self.visit_item(item));
        self.scope = outer;
    }
}

impl<'a> Visit<'a> for Reader {
    fn visit_item(&mut self, item: &'a Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Mod(module) => return self.module(module),
            Item::Use(used) => {
                let before = used.leading_colon.as_ref().map(|_| "::".to_owned());
                return self.imports(before.as_slice(), &used.tree, matches!(used.vis, Visibility::Inherited));
            }
            Item::Struct(it) => self.public(&it.vis, &it.ident),
            Item::Enum(it) => self.public(&it.vis, &it.ident),
            Item::Union(it) => self.public(&it.vis, &it.ident),
            Item::Trait(it) => self.public(&it.vis, &it.ident),
            Item::TraitAlias(it) => self.public(&it.vis, &it.ident),
            Item::Type(it) => self.public(&it.vis, &it.ident),
            Item::Fn(it) => self.function(&it.sig, &it.block),
            Item::Verbatim(stream) => self.tokens(stream.clone(), Of::Code),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'a ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Fn(it) => &it.attrs,
            ImplItem::Const(it) => &it.attrs,
            ImplItem::Type(it) => &it.attrs,
            ImplItem::Macro(it) => &it.attrs,
            _ => &[],
        };
        if is_test(attributes) {
            return;
        }
        if let ImplItem::Fn(it) = item {
            self.function(&it.sig, &it.block);
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'a TraitItem) {
        if let TraitItem::Fn(it) = item {
            if is_test(&it.attrs) {
                return;
            }
            if let Some(body) = &it.default {
                self.function(&it.sig, body);
            }
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_local(&mut self, local: &'a syn::Local) {
        if !is_test(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field(&mut self, field: &'a syn::Field) {
        if !is_test(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'a syn::FieldValue) {
        if !is_test(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_arm(&mut self, arm: &'a syn::Arm) {
        if !is_test(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_expr_block(&mut self, block: &'a syn::ExprBlock) {
        if !is_test(&block.attrs) {
            visit::visit_expr_block(self, block);
        }
    }

    fn visit_signature(&mut self, signature: &'a syn::Signature) {
        let types = signature.inputs.iter().filter_map(|input| match input {
            syn::FnArg::Typed(typed) => Some(&*typed.ty),
            syn::FnArg::Receiver(_) => None,
        });
        self.code.tuples.extend(
            types.filter_map(tuple_at).map(|line| TupleParameter { function: signature.ident.to_string(), line }),
        );
        visit::visit_signature(self, signature);
    }

    /// Its path says who sees something, and uses nothing.
    fn visit_visibility(&mut self, _: &'a Visibility) {}

    fn visit_path(&mut self, path: &'a syn::Path) {
        let leading = path.leading_colon.as_ref().map(|_| "::".to_owned());
        let names = path.segments.iter().map(|segment| segment.ident.unraw().to_string());
        let line = path.segments.first().map_or(0, |first| line_of(&first.ident));
        self.here().mentions.push(Mention { path: leading.into_iter().chain(names).collect(), line });
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.visit_path(&called.path);
        self.tokens(called.tokens.clone(), Of::Code);
    }

    /// Derived code names functions in texts.
    fn visit_attribute(&mut self, attribute: &'a Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone(), Of::Attribute);
        }
    }
}

/// The line of a type that is a tuple of something, or a reference to one.
fn tuple_at(of: &syn::Type) -> Option<usize> {
    match of {
        syn::Type::Reference(to) => tuple_at(&to.elem),
        syn::Type::Paren(inner) => tuple_at(&inner.elem),
        syn::Type::Tuple(tuple) if !tuple.elems.is_empty() => Some(tuple.paren_token.span.open().start().line),
        _ => None,
    }
}

fn line_of(name: &Ident) -> usize {
    name.span().start().line
}
