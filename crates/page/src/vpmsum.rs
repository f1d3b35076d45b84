//! CRC-32C with the carry-less multiplication of POWER8 and later (`vpmsumd`), when the processor that runs has it. `asm!`, as the
//! intrinsics for these vectors are not stable; the registers are named, as their types are not stable either.

#[cfg(target_endian = "big")]
use crate::folding::REVERSE;
use crate::folding::{FOLD, STEP_BYTES};

/// Whether the processor has the instructions.
pub(crate) fn is_there() -> bool {
    sys::topology::has_vector_crypto()
}

/// One instruction for each of eight registers.
macro_rules! eight {
    ($($line:expr),*) => { concat!($($line, "\n"),*) };
}

/// Loads v10 to v17 from `at` on, in the order of numbers. Unaligned text is fine.
macro_rules! load {
    () => {
        eight!(
            "lxvd2x 42, 0, {at}",
            "lxvd2x 43, {o1}, {at}",
            "lxvd2x 44, {o2}, {at}",
            "lxvd2x 45, {o3}, {at}",
            "lxvd2x 46, {o4}, {at}",
            "lxvd2x 47, {o5}, {at}",
            "lxvd2x 48, {o6}, {at}",
            "lxvd2x 49, {o7}, {at}"
        )
    };
}

/// Between the order in which memory is loaded and that of numbers: the same both ways.
#[cfg(target_endian = "little")]
macro_rules! order {
    () => {
        eight!(
            "xxpermdi 42, 42, 42, 2",
            "xxpermdi 43, 43, 43, 2",
            "xxpermdi 44, 44, 44, 2",
            "xxpermdi 45, 45, 45, 2",
            "xxpermdi 46, 46, 46, 2",
            "xxpermdi 47, 47, 47, 2",
            "xxpermdi 48, 48, 48, 2",
            "xxpermdi 49, 49, 49, 2"
        )
    };
}

#[cfg(target_endian = "big")]
macro_rules! order {
    () => {
        eight!(
            "vperm 10, 10, 10, 9",
            "vperm 11, 11, 11, 9",
            "vperm 12, 12, 12, 9",
            "vperm 13, 13, 13, 9",
            "vperm 14, 14, 14, 9",
            "vperm 15, 15, 15, 9",
            "vperm 16, 16, 16, 9",
            "vperm 17, 17, 17, 9"
        )
    };
}

/// Takes `sums` over `steps` steps from `at` on; at least one.
///
/// # Safety
/// `is_there`, and so many bytes are there.
pub(crate) unsafe fn run(sums: &mut [u8; STEP_BYTES], at: *const u8, steps: usize) {
    #[cfg(target_endian = "big")]
    let reverse = REVERSE.as_ptr();
    #[cfg(target_endian = "little")]
    let reverse = sums.as_ptr();
    // SAFETY: reads the text, `sums`, the constants and (big-endian) the order of bytes; writes `sums`; all registers are named below.
    unsafe {
        core::arch::asm!(
            // The high half first in the register: mtvsrd sets doubleword 0.
            "mtvsrd 40, {high}",
            "mtvsrd 41, {low}",
            "xxpermdi 40, 40, 41, 0",
            "lxvd2x 41, 0, {reverse}",
            "mr {text}, {at}",
            "mr {at}, {sums}",
            load!(),
            order!(),
            "vmr 0, 10",
            "vmr 1, 11",
            "vmr 2, 12",
            "vmr 3, 13",
            "vmr 4, 14",
            "vmr 5, 15",
            "vmr 6, 16",
            "vmr 7, 17",
            "mr {at}, {text}",
            "mtctr {steps}",
            "2:",
            load!(),
            "vpmsumd 0, 0, 8",
            "vpmsumd 1, 1, 8",
            "vpmsumd 2, 2, 8",
            "vpmsumd 3, 3, 8",
            "vpmsumd 4, 4, 8",
            "vpmsumd 5, 5, 8",
            "vpmsumd 6, 6, 8",
            "vpmsumd 7, 7, 8",
            order!(),
            "vxor 0, 0, 10",
            "vxor 1, 1, 11",
            "vxor 2, 2, 12",
            "vxor 3, 3, 13",
            "vxor 4, 4, 14",
            "vxor 5, 5, 15",
            "vxor 6, 6, 16",
            "vxor 7, 7, 17",
            "addi {at}, {at}, 128",
            "bdnz 2b",
            "vmr 10, 0",
            "vmr 11, 1",
            "vmr 12, 2",
            "vmr 13, 3",
            "vmr 14, 4",
            "vmr 15, 5",
            "vmr 16, 6",
            "vmr 17, 7",
            order!(),
            "stxvd2x 42, 0, {sums}",
            "stxvd2x 43, {o1}, {sums}",
            "stxvd2x 44, {o2}, {sums}",
            "stxvd2x 45, {o3}, {sums}",
            "stxvd2x 46, {o4}, {sums}",
            "stxvd2x 47, {o5}, {sums}",
            "stxvd2x 48, {o6}, {sums}",
            "stxvd2x 49, {o7}, {sums}",
            at = inout(reg_nonzero) at => _,
            sums = in(reg_nonzero) sums.as_mut_ptr(),
            reverse = in(reg_nonzero) reverse,
            text = out(reg_nonzero) _,
            steps = in(reg_nonzero) steps,
            high = in(reg_nonzero) FOLD[0],
            low = in(reg_nonzero) FOLD[1],
            o1 = in(reg_nonzero) 16_usize,
            o2 = in(reg_nonzero) 32_usize,
            o3 = in(reg_nonzero) 48_usize,
            o4 = in(reg_nonzero) 64_usize,
            o5 = in(reg_nonzero) 80_usize,
            o6 = in(reg_nonzero) 96_usize,
            o7 = in(reg_nonzero) 112_usize,
            out("ctr") _,
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _,
            out("v6") _, out("v7") _, out("v8") _, out("v9") _, out("v10") _, out("v11") _,
            out("v12") _, out("v13") _, out("v14") _, out("v15") _, out("v16") _, out("v17") _,
            options(nostack),
        );
    }
}
