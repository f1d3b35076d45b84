//! Sums, products, quotients and rounding of decimals.

use super::big::{self, Limbs};
use super::{Decimal, GROUP, MAX_DIGITS, MAX_SCALE, scale_up};

/// Drops digits of the fraction that do not fit nine groups together with the integer part; `None` when the integer
/// part alone does not fit.
fn fit(negative: bool, magnitude: Limbs, scale: usize) -> Option<Decimal> {
    let digits = big::digits(&magnitude);
    let groups = digits.saturating_sub(scale).div_ceil(GROUP);
    if groups > MAX_DIGITS / GROUP {
        return None;
    }
    let room = MAX_DIGITS - groups * GROUP;
    if scale > room {
        let cut = big::div_power(&magnitude, scale - room, false);
        return Some(Decimal::from_parts(negative, cut, room));
    }
    Some(Decimal::from_parts(negative, magnitude, scale))
}

/// The scales to which two factors are truncated so that the product fits nine groups, as in the reference: both
/// lose groups, the one with the longer fraction the odd one. `None` when the integer part does not fit.
fn shorten_factors(integer: usize, a: usize, b: usize) -> Option<(usize, usize)> {
    let room = (MAX_DIGITS / GROUP).checked_sub(integer.div_ceil(GROUP))?;
    let (groups_a, groups_b) = (a.div_ceil(GROUP), b.div_ceil(GROUP));
    let excess = (groups_a + groups_b).saturating_sub(room);
    if excess == 0 {
        return Some((a, b));
    }
    let (less, more) = (excess / 2, excess - excess / 2);
    let (drop_a, drop_b) = if groups_a <= groups_b { (less, more) } else { (more, less) };
    // Groups that one side lacks are dropped from the other.
    let (over_a, over_b) = (drop_a.saturating_sub(groups_a), drop_b.saturating_sub(groups_b));
    let kept = |groups: usize, drop: usize, scale: usize| {
        if drop == 0 { scale } else { groups.saturating_sub(drop) * GROUP }
    };
    Some((kept(groups_a, drop_a + over_b, a), kept(groups_b, drop_b + over_a, b)))
}

impl Decimal {
    /// Sum; `None` when it has more than 81 digits before the point.
    pub fn add(&self, other: &Decimal) -> Option<Decimal> {
        if let (Some((a, s)), Some((b, t))) = (self.as_i128(), other.as_i128()) {
            let scale = s.max(t);
            let sum = scale_up(a, scale - s)
                .zip(scale_up(b, scale - t))
                .and_then(|(a, b)| a.checked_add(b));
            if let Some(sum) = sum {
                return Some(Decimal::from_i128(sum, scale));
            }
        }
        let (a, b) = (self.parts(), other.parts());
        let scale = a.scale.max(b.scale);
        let left = big::mul_power(&a.magnitude, scale - a.scale);
        let right = big::mul_power(&b.magnitude, scale - b.scale);
        if a.negative == b.negative {
            return fit(a.negative, big::add(&left, &right), scale);
        }
        if big::compare(&left, &right).is_ge() {
            fit(a.negative, big::sub(&left, &right), scale)
        } else {
            fit(b.negative, big::sub(&right, &left), scale)
        }
    }

    /// Difference; `None` as for `add`.
    pub fn sub(&self, other: &Decimal) -> Option<Decimal> {
        self.add(&other.neg())
    }

    /// Product with the scales added, rounded to 30 digits after the point; `None` as for `add`.
    pub fn mul(&self, other: &Decimal) -> Option<Decimal> {
        if let (Some((a, s)), Some((b, t))) = (self.as_i128(), other.as_i128())
            && let Some(product) = a.checked_mul(b)
        {
            let scale = s as usize + t as usize;
            if scale <= MAX_SCALE as usize {
                return Some(Decimal::from_i128(product, scale as u8));
            }
        }
        let (a, b) = (self.parts(), other.parts());
        let wanted = (a.scale + b.scale).min(MAX_SCALE as usize);
        let integer = (self.integer_digits() + other.integer_digits()) as usize;
        let (cut_a, cut_b) = shorten_factors(integer, a.scale, b.scale)?;
        let left = big::div_power(&a.magnitude, a.scale - cut_a, false);
        let right = big::div_power(&b.magnitude, b.scale - cut_b, false);
        let product = big::mul(&left, &right);
        let exact = fit(a.negative != b.negative, product, cut_a + cut_b)?;
        if exact.scale() as usize > wanted {
            Some(exact.rescale(wanted as u8))
        } else {
            Some(exact)
        }
    }

    /// Quotient with `scale_increment` more digits than `self` has (at most 30), rounded half away from zero; `None`
    /// for a zero divisor or overflow.
    pub fn div(&self, other: &Decimal, scale_increment: u32) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (a, b) = (self.parts(), other.parts());
        // The reference computes whole groups of digits and truncates there, before it rounds.
        let (padded_a, padded_b) =
            (a.scale.next_multiple_of(GROUP), b.scale.next_multiple_of(GROUP));
        let spare = padded_a - a.scale + padded_b - b.scale;
        let more = (scale_increment as usize).saturating_sub(spare);
        let computed = (padded_a + padded_b + more).next_multiple_of(GROUP).min(MAX_DIGITS);
        let wanted = (a.scale + scale_increment as usize).min((MAX_SCALE as usize).max(a.scale));
        let up = computed + b.scale;
        let (numerator, denominator) = if up >= a.scale {
            (big::mul_power(&a.magnitude, up - a.scale), b.magnitude)
        } else {
            (a.magnitude, big::mul_power(&b.magnitude, a.scale - up))
        };
        let (quotient, _) = big::div_rem(&numerator, &denominator);
        let exact = fit(a.negative != b.negative, quotient, computed)?;
        Some(exact.rescale(wanted.min(exact.scale() as usize) as u8))
    }

    /// Integer quotient towards zero; `None` for a zero divisor.
    pub fn div_integer(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (a, b) = (self.parts(), other.parts());
        let scale = a.scale.max(b.scale);
        let left = big::mul_power(&a.magnitude, scale - a.scale);
        let right = big::mul_power(&b.magnitude, scale - b.scale);
        fit(a.negative != b.negative, big::div_rem(&left, &right).0, 0)
    }

    /// Remainder with the sign of `self`; `None` for a zero divisor.
    pub fn rem(&self, other: &Decimal) -> Option<Decimal> {
        if other.is_zero() {
            return None;
        }
        let (a, b) = (self.parts(), other.parts());
        let scale = a.scale.max(b.scale);
        let left = big::mul_power(&a.magnitude, scale - a.scale);
        let right = big::mul_power(&b.magnitude, scale - b.scale);
        fit(a.negative, big::div_rem(&left, &right).1, scale)
    }

    /// Negation.
    pub fn neg(&self) -> Decimal {
        let parts = self.parts();
        Decimal::from_parts(!parts.negative, parts.magnitude, parts.scale)
    }

    /// Absolute value.
    pub fn abs(&self) -> Decimal {
        if self.is_negative() { self.neg() } else { self.clone() }
    }

    /// Rounds half away from zero to `scale` digits after the point (before it when negative). Fewer digits
    /// stay as they are.
    pub fn round(&self, scale: i32) -> Decimal {
        self.cut(scale, true)
    }

    /// Truncates to `scale` digits after the point (before it when negative).
    pub fn truncate(&self, scale: i32) -> Decimal {
        self.cut(scale, false)
    }

    fn cut(&self, scale: i32, round: bool) -> Decimal {
        let parts = self.parts();
        let drop = parts.scale as i64 - i64::from(scale);
        if drop <= 0 {
            return self.clone();
        }
        let kept = big::div_power(&parts.magnitude, drop as usize, round);
        let zeros = if scale < 0 { scale.unsigned_abs() as usize } else { 0 };
        let zeros = if big::is_zero(&kept) { 0 } else { zeros.min(big::MAX_POWER) };
        let magnitude = big::mul_power(&kept, zeros);
        Decimal::from_parts(parts.negative, magnitude, scale.max(0) as usize)
    }

    /// Exactly `scale` digits after the point: rounded, or padded with zeros as far as 81 digits allow.
    pub fn rescale(&self, scale: u8) -> Decimal {
        let current = self.scale();
        if scale == current {
            return self.clone();
        }
        if scale < current {
            return self.round(i32::from(scale));
        }
        if let Some((number, _)) = self.as_i128()
            && let Some(padded) = scale_up(number, scale - current)
        {
            return Decimal::from_i128(padded, scale);
        }
        let parts = self.parts();
        let room = MAX_DIGITS.saturating_sub(big::digits(&parts.magnitude));
        let more = ((scale - current) as usize).min(room);
        let magnitude = big::mul_power(&parts.magnitude, more);
        Decimal::from_parts(parts.negative, magnitude, parts.scale + more)
    }

    /// Largest integer not above.
    pub fn floor(&self) -> Decimal {
        let whole = self.truncate(0);
        if self.is_negative() && whole != *self { whole.step(true) } else { whole }
    }

    /// Smallest integer not below.
    pub fn ceil(&self) -> Decimal {
        let whole = self.truncate(0);
        if !self.is_negative() && whole != *self { whole.step(false) } else { whole }
    }

    fn step(self, down: bool) -> Decimal {
        self.add(&Decimal::from_i64(if down { -1 } else { 1 })).unwrap_or(self)
    }

    /// Same number with the shortest fraction.
    pub fn without_trailing_zeros(&self) -> Decimal {
        if let Some((mut number, mut scale)) = self.as_i128() {
            while scale > 0 && number % 10 == 0 {
                number /= 10;
                scale -= 1;
            }
            return Decimal::from_i128(number, scale);
        }
        let mut parts = self.parts();
        while parts.scale > 0 {
            let mut shorter = parts.magnitude;
            if big::div_small(&mut shorter, 10) != 0 {
                break;
            }
            parts.magnitude = shorter;
            parts.scale -= 1;
        }
        Decimal::from_parts(parts.negative, parts.magnitude, parts.scale)
    }
}
