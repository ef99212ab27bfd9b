/* The clock that profile.c of the firmware asks for: that of the page, in nanoseconds, which play the part of cycles. */
#include "clock.h"
#include "port.h"

uint64_t clock_nanoseconds(void) { return (uint64_t)(page_milliseconds() * 1e6); }

uint32_t port_cycles(port *p) {
    (void)p;
    return (uint32_t)clock_nanoseconds();
}

const port_chip *port_chip_of(port *p) {
    static const port_chip chip = {.target = "browser", .clock_mhz = 1000};
    (void)p;
    return &chip;
}
