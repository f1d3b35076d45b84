//! CRC-32C with the carry-less multiplication of IBM z13 and later (`vgfmag`), when the processor that runs has it and the system lets programs use vectors.
//! `asm!`, as the intrinsics for these vectors are not stable; the registers are named, as their types are not stable either.

use crate::folding::{FOLD, REVERSE, STEP_BYTES};

/// Whether the processor has the instructions.
pub(crate) fn is_there() -> bool {
    sys::topology::has_vectors()
}

/// Takes `sums` over `steps` steps from `at` on; at least one.
///
/// # Safety
/// `is_there`, and so many bytes are there.
#[target_feature(enable = "vector")]
pub(crate) unsafe fn run(sums: &mut [u8; STEP_BYTES], at: *const u8, steps: usize) {
    // SAFETY: reads the text, `sums`, the constants and the order of bytes; writes `sums`; all registers are named below. Those of v8 to v15
    // that belong to the caller are not used.
    unsafe {
        core::arch::asm!(
            "vlvgp %v24, {high}, {low}",
            "vl %v25, 0({reverse})",
            "vl %v0, 0({sums})",
            "vl %v1, 16({sums})",
            "vl %v2, 32({sums})",
            "vl %v3, 48({sums})",
            "vl %v4, 64({sums})",
            "vl %v5, 80({sums})",
            "vl %v6, 96({sums})",
            "vl %v7, 112({sums})",
            "vperm %v0, %v0, %v0, %v25",
            "vperm %v1, %v1, %v1, %v25",
            "vperm %v2, %v2, %v2, %v25",
            "vperm %v3, %v3, %v3, %v25",
            "vperm %v4, %v4, %v4, %v25",
            "vperm %v5, %v5, %v5, %v25",
            "vperm %v6, %v6, %v6, %v25",
            "vperm %v7, %v7, %v7, %v25",
            "2:",
            "vl %v16, 0({at})",
            "vl %v17, 16({at})",
            "vl %v18, 32({at})",
            "vl %v19, 48({at})",
            "vl %v20, 64({at})",
            "vl %v21, 80({at})",
            "vl %v22, 96({at})",
            "vl %v23, 112({at})",
            "vperm %v16, %v16, %v16, %v25",
            "vperm %v17, %v17, %v17, %v25",
            "vperm %v18, %v18, %v18, %v25",
            "vperm %v19, %v19, %v19, %v25",
            "vperm %v20, %v20, %v20, %v25",
            "vperm %v21, %v21, %v21, %v25",
            "vperm %v22, %v22, %v22, %v25",
            "vperm %v23, %v23, %v23, %v25",
            "vgfmag %v0, %v0, %v24, %v16",
            "vgfmag %v1, %v1, %v24, %v17",
            "vgfmag %v2, %v2, %v24, %v18",
            "vgfmag %v3, %v3, %v24, %v19",
            "vgfmag %v4, %v4, %v24, %v20",
            "vgfmag %v5, %v5, %v24, %v21",
            "vgfmag %v6, %v6, %v24, %v22",
            "vgfmag %v7, %v7, %v24, %v23",
            "la {at}, 128({at})",
            "brctg {steps}, 2b",
            "vperm %v0, %v0, %v0, %v25",
            "vperm %v1, %v1, %v1, %v25",
            "vperm %v2, %v2, %v2, %v25",
            "vperm %v3, %v3, %v3, %v25",
            "vperm %v4, %v4, %v4, %v25",
            "vperm %v5, %v5, %v5, %v25",
            "vperm %v6, %v6, %v6, %v25",
            "vperm %v7, %v7, %v7, %v25",
            "vst %v0, 0({sums})",
            "vst %v1, 16({sums})",
            "vst %v2, 32({sums})",
            "vst %v3, 48({sums})",
            "vst %v4, 64({sums})",
            "vst %v5, 80({sums})",
            "vst %v6, 96({sums})",
            "vst %v7, 112({sums})",
            at = inout(reg_addr) at => _,
            sums = in(reg_addr) sums.as_mut_ptr(),
            reverse = in(reg_addr) REVERSE.as_ptr(),
            steps = inout(reg) steps => _,
            high = in(reg) FOLD[0],
            low = in(reg) FOLD[1],
            out("v0") _, out("v1") _, out("v2") _, out("v3") _, out("v4") _, out("v5") _, out("v6") _, out("v7") _, out("v16") _, out("v17") _, out("v18") _, out("v19") _, out("v20") _, out("v21") _, out("v22") _, out("v23") _, out("v24") _, out("v25") _,
            options(nostack),
        );
    }
}
