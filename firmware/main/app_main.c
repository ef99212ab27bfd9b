/* chiplm on an ESP32-S3: ESP-IDF calls app_main on the first core. */
#include "board.h"
#include "port_esp.h"

void app_main(void) {
    static board state; /* in internal RAM: both cores look at its team all the time */
    board_run(&state, port_esp_start());
}
