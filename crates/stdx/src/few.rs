//! A list that holds one item without a heap allocation.

use std::ops::{Deref, DerefMut};

/// Usually zero or one item, sometimes more.
#[derive(Debug)]
pub enum Few<T> {
    /// At most one.
    One(Option<T>),
    /// A list that once had more than one.
    Many(Vec<T>),
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Few::One(None)
    }
}

impl<T> Few<T> {
    /// Adds an item at the end.
    #[inline]
    pub fn push(&mut self, item: T) {
        match self {
            Few::One(none @ None) => *none = Some(item),
            Few::One(first) => *self = Few::Many(first.take().into_iter().chain([item]).collect()),
            Few::Many(items) => items.push(item),
        }
    }

    /// Drops the items for which `keep` returns false.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        match self {
            Few::One(item) => drop(item.take_if(|item| !keep(item))),
            Few::Many(items) => items.retain(keep),
        }
    }

    /// Drops all.
    pub fn clear(&mut self) {
        *self = Few::One(None);
    }
}

impl<T> Deref for Few<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match self {
            Few::One(item) => item.as_slice(),
            Few::Many(items) => items,
        }
    }
}

impl<T> DerefMut for Few<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Few::One(item) => item.as_mut_slice(),
            Few::Many(items) => items,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn it_is_a_list() {
        let mut few = Few::default();
        assert!(few.is_empty());
        for item in 0..4 {
            few.push(item);
            assert_eq!(*few, (0..=item).collect::<Vec<_>>());
        }
        few[3] = 9;
        few.retain(|item| item % 2 == 1);
        assert_eq!(*few, [1, 9]);
        few.clear();
        few.push(5);
        few.retain(|item| *item == 5);
        assert_eq!(*few, [5]);
        few.retain(|item| *item != 5);
        assert!(few.is_empty());
    }
}
