//! What attributes say of an item: whether it is there in tests alone, and where its file is.

use std::collections::BTreeSet;

use syn::{
    Attribute, Expr, ExprLit, Item, Lit, Meta, MetaList, MetaNameValue, Token, ext::IdentExt, punctuated::Punctuated,
};

/// Whether something is compiled for tests alone: `#[cfg(test)]`, a feature named after tests, or a test itself.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args().is_ok_and(|condition| needs_test(&condition))
        }
        Meta::Path(path) | Meta::List(MetaList { path, .. }) => {
            path.segments.last().is_some_and(|last| last.ident == "test")
        }
        Meta::NameValue(_) => false,
    })
}

/// Whether a condition holds in tests alone.
fn needs_test(condition: &Meta) -> bool {
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::NameValue(pair) => {
            pair.path.is_ident("feature") && text(pair).is_some_and(|name| name.starts_with("test"))
        }
        Meta::List(list) => {
            let parts = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default();
            list.path.is_ident("all") && parts.iter().any(needs_test)
                || list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test)
        }
    }
}

/// `#[path = "..."]`
pub(crate) fn path_of(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => text(pair),
        _ => None,
    }
}

fn text(pair: &MetaNameValue) -> Option<String> {
    match &pair.value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
        _ => None,
    }
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(it) => &it.attrs,
        Item::Enum(it) => &it.attrs,
        Item::ExternCrate(it) => &it.attrs,
        Item::Fn(it) => &it.attrs,
        Item::ForeignMod(it) => &it.attrs,
        Item::Impl(it) => &it.attrs,
        Item::Macro(it) => &it.attrs,
        Item::Mod(it) => &it.attrs,
        Item::Static(it) => &it.attrs,
        Item::Struct(it) => &it.attrs,
        Item::Trait(it) => &it.attrs,
        Item::TraitAlias(it) => &it.attrs,
        Item::Type(it) => &it.attrs,
        Item::Union(it) => &it.attrs,
        Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// What a module defines itself, its modules and imports aside.
pub(crate) fn names_of(items: &[Item]) -> BTreeSet<String> {
    let names = items.iter().filter(|item| !is_test(attributes(item))).filter_map(|item| match item {
        Item::Const(it) => Some(&it.ident),
        Item::Enum(it) => Some(&it.ident),
        Item::Fn(it) => Some(&it.sig.ident),
        Item::Macro(it) => it.ident.as_ref(),
        Item::Static(it) => Some(&it.ident),
        Item::Struct(it) => Some(&it.ident),
        Item::Trait(it) => Some(&it.ident),
        Item::TraitAlias(it) => Some(&it.ident),
        Item::Type(it) => Some(&it.ident),
        Item::Union(it) => Some(&it.ident),
        _ => None,
    });
    names.map(|name| name.unraw().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_test_item(text: &str) -> bool {
        is_test(attributes(&syn::parse_str(text).unwrap()))
    }

    #[test]
    fn what_tests_alone_have_is_told_from_the_rest() {
        for attribute in [
            "#[cfg(test)]",
            "#[cfg(all(unix, test))]",
            "#[cfg(any(test, feature = \"test-support\"))]",
            "#[cfg(feature = \"testing\")]",
            "#[test]",
            "#[tokio::test]",
            "#[tokio::test(start_paused = true)]",
        ] {
            assert!(is_test_item(&format!("{attribute} fn f() {{}}")), "{attribute}");
        }
        for attribute in ["#[cfg(not(test))]", "#[cfg(any(test, unix))]", "#[cfg(feature = \"x\")]", "#[must_use]"] {
            assert!(!is_test_item(&format!("{attribute} fn f() {{}}")), "{attribute}");
        }
    }
}
