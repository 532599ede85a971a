//! RISC-V with a CLINT: its timer is the tick.

use core::cell::Cell;

use critical_section::Mutex;
use riscv::{interrupt::Interrupt, register::mie};

/// The registers of QEMU's `virt`.
const MTIMECMP: *mut u32 = 0x0200_4000 as *mut u32;
const MTIME: *const u32 = 0x0200_BFF8 as *const u32;

/// When the next tick is due, and the distance between two ticks.
static NEXT: Mutex<Cell<(u64, u32)>> = Mutex::new(Cell::new((0, 0)));
/// Whether the interrupt handler is running.
static IS_INSIDE: Mutex<Cell<bool>> = Mutex::new(Cell::new(false));

pub(crate) fn start_ticks(clocks_per_tick: u32) {
    let first = time() + u64::from(clocks_per_tick);
    critical_section::with(|cs| NEXT.borrow(cs).set((first, clocks_per_tick)));
    set_alarm(first);
    // SAFETY: the handler below is defined.
    unsafe { mie::set_mtimer() };
    // SAFETY: no critical section is open, because the program has just started.
    unsafe { riscv::interrupt::enable() };
}

/// How much of the last counted tick has elapsed: all of it, if the next tick interrupt is pending.
pub(crate) fn clocks_in_tick(_: u32) -> u32 {
    let (next, apart) = critical_section::with(|cs| NEXT.borrow(cs).get());
    let begun = next - u64::from(apart);
    u32::try_from(time() - begun).unwrap_or(apart).min(apart - 1)
}

/// The next alarm is computed from the previous one, not from the time at which the handler runs,
/// so that no tick is lost.
#[riscv_rt::core_interrupt(Interrupt::MachineTimer)]
fn machine_timer() {
    critical_section::with(|cs| {
        let (now, apart) = NEXT.borrow(cs).get();
        let next = now + u64::from(apart);
        NEXT.borrow(cs).set((next, apart));
        set_alarm(next);
        IS_INSIDE.borrow(cs).set(true);
    });
    crate::board::tick();
    critical_section::with(|cs| IS_INSIDE.borrow(cs).set(false));
}

fn time() -> u64 {
    loop {
        // SAFETY: the registers of the timer, which are always readable.
        let (high, low, again) = unsafe {
            (MTIME.add(1).read_volatile(), MTIME.read_volatile(), MTIME.add(1).read_volatile())
        };
        if high == again {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

/// Writes the two halves in an order in which the alarm is never earlier than both the old and the
/// new one.
fn set_alarm(at: u64) {
    // SAFETY: the registers of the timer's alarm; no other code writes them.
    unsafe {
        MTIMECMP.write_volatile(u32::MAX);
        MTIMECMP.add(1).write_volatile((at >> 32) as u32);
        MTIMECMP.write_volatile(at as u32);
    }
}

pub(crate) fn wait_for_interrupt() {
    riscv::asm::wfi();
}

#[cfg(any(feature = "executor", feature = "scheduler"))]
pub(crate) fn is_interrupt() -> bool {
    critical_section::with(|cs| IS_INSIDE.borrow(cs).get())
}
