//! Cortex-M: SysTick is the tick.

use cortex_m::{
    Peripherals,
    peripheral::{SCB, SYST, syst::SystClkSource},
};

pub(crate) fn start_ticks(clocks_per_tick: u32) {
    let mut syst = Peripherals::take().expect("ticks are started once").SYST;
    syst.set_clock_source(SystClkSource::Core);
    syst.set_reload(clocks_per_tick - 1);
    syst.clear_current();
    syst.enable_counter();
    syst.enable_interrupt();
}

/// How much of the last counted tick has elapsed: all of it, if the next tick interrupt is pending.
pub(crate) fn clocks_in_tick(clocks_per_tick: u32) -> u32 {
    let left = SYST::get_current();
    match (SCB::is_pendst_pending(), left) {
        (true, _) => clocks_per_tick - 1,
        // The timer has been started, but has not been loaded yet.
        (false, 0) => 0,
        (false, left) => clocks_per_tick - 1 - left,
    }
}

/// The handler of SysTick, named as in the vector table.
#[cortex_m_rt::exception]
fn SysTick() {
    crate::board::tick();
}

pub(crate) fn wait_for_interrupt() {
    cortex_m::asm::wfi();
}

#[cfg(any(feature = "executor", feature = "scheduler"))]
pub(crate) fn is_interrupt() -> bool {
    use cortex_m::peripheral::scb::VectActive;

    SCB::vect_active() != VectActive::ThreadMode
}
