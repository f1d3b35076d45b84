//! Methods of `Session`: their number grows when a connection's state becomes the place for everything.

use syn::visit::{self, Visit};
use syn::{ImplItem, Type};

use super::ratchet::{Better, Ratchet};
use super::source::Source;

/// The target: fewer methods are not required.
const TARGET: u64 = 149;

#[derive(Default)]
struct Methods(u64);

impl<'ast> Visit<'ast> for Methods {
    fn visit_item_impl(&mut self, block: &'ast syn::ItemImpl) {
        let Type::Path(owner) = &*block.self_ty else { return };
        if owner.path.segments.last().is_some_and(|segment| segment.ident == "Session") {
            let methods = block.items.iter().filter(|item| matches!(item, ImplItem::Fn(_)));
            self.0 += methods.count() as u64;
        }
        visit::visit_item_impl(self, block);
    }
}

/// How many functions the impl blocks of `Session` have, those of traits included.
pub fn ratchet(sources: &[Source]) -> Ratchet {
    let (mut value, mut places) = (0, Vec::new());
    for source in sources {
        let mut methods = Methods::default();
        source.items.iter().for_each(|item| methods.visit_item(item));
        if methods.0 > 0 {
            value += methods.0;
            places.push(format!("{:>4} {}", methods.0, source.name));
        }
    }
    places.sort_unstable_by(|a, b| b.cmp(a));
    Ratchet { name: "session_methods".into(), better: Better::Lower, value, target: TARGET, places }
}

#[cfg(test)]
mod tests {
    use super::super::source::sample;
    use super::*;

    #[test]
    fn methods_of_session_are_counted() {
        let text = "impl Session { fn a() {} const B: u8 = 1; fn c() {} }\n\
                    impl D for Session { fn d() {} }\nimpl Sessions { fn e() {} }\n";
        let found = ratchet(&[sample("b.rs", text)]);
        assert_eq!((found.value, found.places), (3, vec!["   3 crates/a/src/b.rs".to_owned()]));
    }
}
