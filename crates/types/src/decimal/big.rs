//! Unsigned integers of 576 bits: room for the product of two 81-digit numbers. Signs and scales are handled by the callers.

use std::cmp::Ordering;

/// Little-endian words.
pub(super) type Limbs = [u64; LIMBS];

/// Words of a `Limbs`.
pub(super) const LIMBS: usize = 9;

/// Zero.
pub(super) const ZERO: Limbs = [0; LIMBS];

/// Highest power of ten in the table.
pub(super) const MAX_POWER: usize = 172;

/// Powers of ten.
static POWERS: [Limbs; MAX_POWER + 1] = powers();

const fn powers() -> [Limbs; MAX_POWER + 1] {
    let mut table = [ZERO; MAX_POWER + 1];
    table[0][0] = 1;
    let mut power = 1;
    while power <= MAX_POWER {
        let mut carry = 0u128;
        let mut limb = 0;
        while limb < LIMBS {
            let wide = table[power - 1][limb] as u128 * 10 + carry;
            table[power][limb] = wide as u64;
            carry = wide >> 64;
            limb += 1;
        }
        power += 1;
    }
    table
}

/// `10^power`; the highest in the table when `power` is beyond it.
pub(super) fn power_of_ten(power: usize) -> &'static Limbs {
    &POWERS[power.min(MAX_POWER)]
}

pub(super) fn from_u128(number: u128) -> Limbs {
    let mut limbs = ZERO;
    limbs[0] = number as u64;
    limbs[1] = (number >> 64) as u64;
    limbs
}

/// The number if it fits.
pub(super) fn to_u128(limbs: &Limbs) -> Option<u128> {
    if limbs[2..].iter().any(|&limb| limb != 0) {
        return None;
    }
    Some(u128::from(limbs[1]) << 64 | u128::from(limbs[0]))
}

pub(super) fn is_zero(limbs: &Limbs) -> bool {
    limbs.iter().all(|&limb| limb == 0)
}

pub(super) fn compare(a: &Limbs, b: &Limbs) -> Ordering {
    a.iter().rev().cmp(b.iter().rev())
}

/// Sum; wraps beyond 576 bits, which bounded operands never reach.
pub(super) fn add(a: &Limbs, b: &Limbs) -> Limbs {
    let mut sum = ZERO;
    let mut carry = false;
    for i in 0..LIMBS {
        let (partial, over_a) = a[i].overflowing_add(b[i]);
        let (total, over_b) = partial.overflowing_add(u64::from(carry));
        sum[i] = total;
        carry = over_a | over_b;
    }
    sum
}

/// Difference; the caller has `a >= b`.
pub(super) fn sub(a: &Limbs, b: &Limbs) -> Limbs {
    let mut difference = ZERO;
    let mut borrow = false;
    for i in 0..LIMBS {
        let (partial, under_a) = a[i].overflowing_sub(b[i]);
        let (total, under_b) = partial.overflowing_sub(u64::from(borrow));
        difference[i] = total;
        borrow = under_a | under_b;
    }
    difference
}

/// Product; wraps beyond 576 bits.
pub(super) fn mul(a: &Limbs, b: &Limbs) -> Limbs {
    let mut product = ZERO;
    for (i, &word) in a.iter().enumerate() {
        if word == 0 {
            continue;
        }
        let mut carry = 0u128;
        for j in 0..LIMBS - i {
            let wide = u128::from(word) * u128::from(b[j]) + u128::from(product[i + j]) + carry;
            product[i + j] = wide as u64;
            carry = wide >> 64;
        }
    }
    product
}

/// Divides in place, returns the remainder.
pub(super) fn div_small(a: &mut Limbs, divisor: u64) -> u64 {
    let mut remainder = 0u128;
    for limb in a.iter_mut().rev() {
        let wide = remainder << 64 | u128::from(*limb);
        *limb = (wide / u128::from(divisor)) as u64;
        remainder = wide % u128::from(divisor);
    }
    remainder as u64
}

fn significant(limbs: &Limbs) -> usize {
    LIMBS - limbs.iter().rev().take_while(|&&limb| limb == 0).count()
}

/// Quotient and remainder by long division on 64-bit words; the divisor is not zero.
pub(super) fn div_rem(a: &Limbs, b: &Limbs) -> (Limbs, Limbs) {
    let words = significant(b);
    if compare(a, b) == Ordering::Less || words == 0 {
        return (ZERO, *a);
    }
    if words == 1 {
        let mut quotient = *a;
        let remainder = div_small(&mut quotient, b[0]);
        return (quotient, from_u128(u128::from(remainder)));
    }
    let shift = b[words - 1].leading_zeros();
    let divisor = shift_left(b, shift);
    let mut rest = [0u64; LIMBS + 1];
    rest[..LIMBS].copy_from_slice(&shift_left(a, shift));
    if shift > 0 {
        rest[LIMBS] = a[LIMBS - 1] >> (64 - shift);
    }
    let mut quotient = ZERO;
    for position in (0..=LIMBS - words).rev() {
        quotient[position] = long_step(&mut rest, &divisor, words, position);
    }
    let mut remainder = ZERO;
    for i in 0..words {
        remainder[i] = rest[i] >> shift;
        if shift > 0 {
            remainder[i] |= rest[i + 1] << (64 - shift);
        }
    }
    (quotient, remainder)
}

/// One digit of long division: estimates it from two words, then subtracts and corrects.
fn long_step(rest: &mut [u64; LIMBS + 1], divisor: &Limbs, words: usize, position: usize) -> u64 {
    let top = u128::from(rest[position + words]) << 64 | u128::from(rest[position + words - 1]);
    let lead = u128::from(divisor[words - 1]);
    let mut digit = top / lead;
    let mut left = top % lead;
    while digit >> 64 != 0
        || digit * u128::from(divisor[words - 2])
            > (left << 64 | u128::from(rest[position + words - 2]))
    {
        digit -= 1;
        left += lead;
        if left >> 64 != 0 {
            break;
        }
    }
    let mut borrow = 0i128;
    let mut carry = 0u128;
    for i in 0..words {
        let wide = digit * u128::from(divisor[i]) + carry;
        carry = wide >> 64;
        let difference = i128::from(rest[position + i]) - i128::from(wide as u64) + borrow;
        rest[position + i] = difference as u64;
        borrow = difference >> 64;
    }
    let difference = i128::from(rest[position + words]) - carry as i128 + borrow;
    rest[position + words] = difference as u64;
    if difference < 0 {
        digit -= 1;
        let mut carry = 0u128;
        for i in 0..words {
            let wide = u128::from(rest[position + i]) + u128::from(divisor[i]) + carry;
            rest[position + i] = wide as u64;
            carry = wide >> 64;
        }
        rest[position + words] = rest[position + words].wrapping_add(carry as u64);
    }
    digit as u64
}

fn shift_left(a: &Limbs, bits: u32) -> Limbs {
    if bits == 0 {
        return *a;
    }
    let mut shifted = ZERO;
    for i in (0..LIMBS).rev() {
        let low = if i > 0 { a[i - 1] >> (64 - bits) } else { 0 };
        shifted[i] = a[i] << bits | low;
    }
    shifted
}

/// Number of decimal digits; 0 for zero.
pub(super) fn digits(a: &Limbs) -> usize {
    let words = significant(a);
    if words == 0 {
        return 0;
    }
    let bits = words * 64 - a[words - 1].leading_zeros() as usize;
    // 1233 / 4096 is just below log10(2): the estimate is exact or one too low.
    let estimate = (bits * 1233) >> 12;
    estimate + usize::from(compare(a, power_of_ten(estimate)) != Ordering::Less)
}

/// `a / 10^power`, rounded half up when `round`.
pub(super) fn div_power(a: &Limbs, power: usize, round: bool) -> Limbs {
    if power == 0 {
        return *a;
    }
    if power > MAX_POWER {
        return ZERO;
    }
    let (mut quotient, _) = div_rem(a, power_of_ten(power - 1));
    let digit = div_small(&mut quotient, 10);
    if round && digit >= 5 { add(&quotient, &from_u128(1)) } else { quotient }
}

/// `a * 10^power`.
pub(super) fn mul_power(a: &Limbs, power: usize) -> Limbs {
    if power == 0 || is_zero(a) { *a } else { mul(a, power_of_ten(power)) }
}
