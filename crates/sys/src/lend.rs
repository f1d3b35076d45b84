//! Lending a function that borrows from its caller to code that takes only callbacks without lifetimes, like an interpreter in C.

use std::sync::Arc;
use std::thread::{self, ThreadId};

use crate::sync::Mutex;

/// A function that somebody lent: callable until the loan ends, on the thread that lent it. Clones share the loan.
pub struct Lent<Q, A>(Arc<Mutex<State<Q, A>>>);

impl<Q, A> Clone for Lent<Q, A> {
    fn clone(&self) -> Self {
        Lent(self.0.clone())
    }
}

/// `None` while the function runs, and after the loan.
type State<Q, A> = Option<Place<Q, A>>;

struct Place<Q, A> {
    lender: ThreadId,
    function: *mut (dyn FnMut(Q) -> A + 'static),
}

// SAFETY: the pointer is followed only on the thread that lent the function (`Lent::call`).
unsafe impl<Q, A> Send for Place<Q, A> {}

/// Ends the loan also when the borrower panics.
struct EndOfLoan<'a, Q, A>(&'a Lent<Q, A>);

impl<Q, A> Drop for EndOfLoan<'_, Q, A> {
    fn drop(&mut self) {
        *self.0.0.lock() = None;
    }
}

/// Puts a function back after its call.
struct PutBack<'a, Q, A> {
    lent: &'a Lent<Q, A>,
    place: Option<Place<Q, A>>,
}

impl<Q, A> Drop for PutBack<'_, Q, A> {
    fn drop(&mut self) {
        *self.lent.0.lock() = self.place.take();
    }
}

/// Lends `function` to `borrower`, which may give clones of the loan to callbacks that outlive it.
pub fn lend<Q: 'static, A: 'static, R>(
    function: &mut dyn FnMut(Q) -> A,
    borrower: impl FnOnce(&Lent<Q, A>) -> R,
) -> R {
    let function: *mut (dyn FnMut(Q) -> A + '_) = function;
    // SAFETY: only the lifetime changes. The pointer is followed only during `borrower`, while this call holds the exclusive reference:
    // afterwards `EndOfLoan` has removed it from the state that all clones share, and a call that runs then (on this thread, the only one
    // that can) would have to have returned before `borrower` did.
    let function: *mut (dyn FnMut(Q) -> A + 'static) = unsafe { std::mem::transmute(function) };
    let place = Place { lender: thread::current().id(), function };
    let lent = Lent(Arc::new(Mutex::new(Some(place))));
    let end = EndOfLoan(&lent);
    let result = borrower(&lent);
    drop(end);
    result
}

impl<Q, A> Lent<Q, A> {
    /// Calls the function; `None` after the loan, on another thread, and while the function runs already.
    pub fn call(&self, question: Q) -> Option<A> {
        let place = {
            let mut state = self.0.lock();
            let here = thread::current().id();
            if state.as_ref().is_none_or(|place| place.lender != here) {
                return None;
            }
            state.take()
        };
        let back = PutBack { lent: self, place };
        let function = back.place.as_ref()?.function;
        // SAFETY: this is the lender's thread, inside the loan, so that the reference behind the pointer lives; the state was taken, so
        // that nobody else follows it until `back` is dropped.
        Some(unsafe { (*function)(question) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lent_function_is_called_until_the_loan_ends() {
        let mut sum = 0;
        let mut kept = None;
        let inside = lend(
            &mut |number: i32| {
                sum += number;
                sum
            },
            |lent| {
                kept = Some(lent.clone());
                let elsewhere = lent.clone();
                let other = thread::spawn(move || elsewhere.call(5)).join();
                assert_eq!(other.expect("no panic"), None);
                (lent.call(1), lent.call(2))
            },
        );
        assert_eq!(inside, (Some(1), Some(3)));
        assert_eq!(kept.and_then(|lent| lent.call(4)), None);
        assert_eq!(sum, 3);
    }

    #[test]
    fn a_function_does_not_call_itself_and_comes_back_after_a_panic() {
        let handle = std::cell::RefCell::new(None::<Lent<bool, Option<bool>>>);
        let mut function = |fails: bool| {
            assert!(!fails, "asked to");
            handle.borrow().as_ref().map(|lent| lent.call(false).is_none())
        };
        lend(&mut function, |lent| {
            *handle.borrow_mut() = Some(lent.clone());
            let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lent.call(true)));
            assert!(failed.is_err());
            assert_eq!(lent.call(false), Some(Some(true)));
        });
    }
}
