/* port_esp.h - the port to ESP-IDF. Internal. */
#ifndef CHIPLM_PORT_ESP_H
#define CHIPLM_PORT_ESP_H

#include "port.h"

/* Starts the serial driver, the DMA and the watchdog of the calling task, which stays on its core. Never null. */
port *port_esp_start(void);

#endif
