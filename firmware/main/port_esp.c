/* The port to ESP-IDF: everything that the firmware wants of the ESP32-S3. */
#include "port_esp.h"

#include <string.h>

#include "driver/usb_serial_jtag.h"
#include "esp_app_desc.h"
#include "esp_async_memcpy.h"
#include "esp_attr.h"
#include "esp_chip_info.h"
#include "esp_cpu.h"
#include "esp_heap_caps.h"
#include "esp_partition.h"
#include "esp_psram.h"
#include "esp_system.h"
#include "esp_task_wdt.h"
#include "esp_timer.h"
#include "freertos/FreeRTOS.h"
#include "freertos/semphr.h"
#include "freertos/task.h"
#include "sdkconfig.h"
#include "writer.h"

enum {
    SERIAL_BUFFER = 4096, /* of the driver, each way */
    MODEL_TYPE = 0x40,    /* of the model's partition */
    HEADER = 64,
    SECOND_CORE = 1,
    SECOND_STACK = 8192,
    SECOND_PRIORITY = 5,
    ALIGN = 64, /* a line of the data cache */
};

struct port {
    port_chip chip;
    char name[32];
    TaskHandle_t second;
    SemaphoreHandle_t ended;
    void (*run)(void *self);
    void *self;
    async_memcpy_handle_t dma; /* null without */
    SemaphoreHandle_t copied;
};

static port machine;

const port_chip *port_chip_of(port *p) { return &p->chip; }

#if CONFIG_SPIRAM_MODE_OCT
#define PSRAM_MODE "octal"
#else
#define PSRAM_MODE "quad"
#endif

static void name_chip(port *p) {
    esp_chip_info_t info;
    esp_chip_info(&info);
    writer w = {.buffer = p->name, .room = sizeof p->name};
    put(&w, CONFIG_IDF_TARGET " v");
    put_number(&w, info.revision / 100);
    put(&w, ".");
    put_number(&w, info.revision % 100);
    put_end(&w);
    p->chip = (port_chip){
        .target = CONFIG_IDF_TARGET,
        .chip = p->name,
        .firmware = esp_app_get_description()->version,
        .clock_mhz = CONFIG_ESP_DEFAULT_CPU_FREQ_MHZ,
        .cores = info.cores,
        .cache_line = CONFIG_ESP32S3_DATA_CACHE_LINE_SIZE,
        .psram_mode = PSRAM_MODE,
        .psram_mhz = CONFIG_SPIRAM_SPEED,
        .psram_bytes = esp_psram_is_initialized() ? esp_psram_get_size() : 0,
    };
}

port *port_esp_start(void) {
    port *p = &machine;
    usb_serial_jtag_driver_config_t serial = {.tx_buffer_size = SERIAL_BUFFER, .rx_buffer_size = SERIAL_BUFFER};
    ESP_ERROR_CHECK(usb_serial_jtag_driver_install(&serial));
    async_memcpy_config_t copies = ASYNC_MEMCPY_DEFAULT_CONFIG();
    if (esp_async_memcpy_install(&copies, &p->dma) != ESP_OK) {
        p->dma = NULL;
    }
    p->copied = xSemaphoreCreateBinary();
    p->ended = xSemaphoreCreateBinary();
    ESP_ERROR_CHECK(esp_task_wdt_add(NULL));
    name_chip(p);
    return p;
}

/* ------------------------------------------------------------------------------------------------ the serial line */

int port_read(port *p, void *to, size_t room, uint32_t wait_ms) {
    (void)p;
    return usb_serial_jtag_read_bytes(to, room, pdMS_TO_TICKS(wait_ms));
}

bool port_stopped(port *p) {
    (void)p;
    return false;
}

/* The driver takes all bytes or none. */
size_t port_write(port *p, const void *bytes, size_t n, uint32_t wait_ms) {
    (void)p;
    if (!usb_serial_jtag_is_connected()) {
        return 0;
    }
    const int sent = usb_serial_jtag_write_bytes(bytes, n, pdMS_TO_TICKS(wait_ms));
    return sent > 0 ? (size_t)sent : 0;
}

/* --------------------------------------------------------------------------------------------------- time, and life */

uint64_t port_microseconds(port *p) {
    (void)p;
    return (uint64_t)esp_timer_get_time();
}

uint32_t port_cycles(port *p) {
    (void)p;
    return esp_cpu_get_cycle_count();
}

void port_feed(port *p) {
    (void)p;
    (void)esp_task_wdt_reset();
}

void port_restart(port *p) {
    (void)p;
    (void)usb_serial_jtag_wait_tx_done(pdMS_TO_TICKS(200)); /* the answer gets out */
    esp_restart();
}

/* ---------------------------------------------------------------------------------------------------------- memory */

static uint32_t caps_of(port_memory memory) {
    return MALLOC_CAP_8BIT | (memory == PORT_SRAM ? MALLOC_CAP_INTERNAL : MALLOC_CAP_SPIRAM);
}

port_room port_room_of(port *p, port_memory memory) {
    (void)p;
    const uint32_t caps = caps_of(memory);
    return (port_room){.total = heap_caps_get_total_size(caps),
                       .free = heap_caps_get_free_size(caps),
                       .largest = heap_caps_get_largest_free_block(caps)};
}

void *port_take(port *p, port_memory memory, size_t bytes) {
    (void)p;
    return heap_caps_aligned_alloc(ALIGN, bytes, caps_of(memory));
}

void port_booted(port *p, const char *code, const char *failure) {
    (void)p;
    (void)code;
    (void)failure;
}

void port_lend(port *p, port_memory memory, size_t bytes) {
    (void)p;
    (void)memory;
    (void)bytes;
}

static bool IRAM_ATTR copy_done(async_memcpy_handle_t dma, async_memcpy_event_t *event, void *copied) {
    (void)dma;
    (void)event;
    BaseType_t woken = pdFALSE;
    xSemaphoreGiveFromISR((SemaphoreHandle_t)copied, &woken);
    return woken == pdTRUE;
}

bool port_copy(port *p, void *to, const void *from, size_t n) {
    return p->dma != NULL && esp_async_memcpy(p->dma, to, (void *)(uintptr_t)from, n, copy_done, p->copied) == ESP_OK &&
           xSemaphoreTake(p->copied, pdMS_TO_TICKS(1000)) == pdTRUE;
}

void port_read_vectors(const void *at, uint32_t blocks);

void port_read_through(const void *at, size_t bytes) { port_read_vectors(at, bytes / 64); }

/* -------------------------------------------------------------------------------------------------------- the model */

/* Bytes of the file as its header says, within the partition; all of it when the header says nothing that can be. */
static size_t file_bytes(const uint8_t *header, size_t room) {
    uint64_t bytes;
    memcpy(&bytes, header + 16, sizeof bytes);
    return bytes >= HEADER && bytes <= room ? (size_t)bytes : room;
}

static bool is_erased(const uint8_t *header) {
    for (unsigned i = 0; i < HEADER; i++) {
        if (header[i] != 0xff) {
            return false;
        }
    }
    return true;
}

port_model_state port_find_model(port *p, port_model *model) {
    (void)p;
    *model = (port_model){0};
    const esp_partition_t *partition =
        esp_partition_find_first((esp_partition_type_t)MODEL_TYPE, ESP_PARTITION_SUBTYPE_ANY, "model");
    if (partition == NULL) {
        return PORT_MODEL_MISSING;
    }
    uint8_t header[HEADER];
    model->room = partition->size;
    model->error = esp_partition_read(partition, 0, header, sizeof header);
    if (model->error != ESP_OK) {
        return PORT_MODEL_FAILED;
    }
    if (is_erased(header)) {
        return PORT_MODEL_EMPTY;
    }
    esp_partition_mmap_handle_t handle; /* mapped for good */
    model->bytes = file_bytes(header, partition->size);
    model->error = esp_partition_mmap(partition, 0, model->bytes, ESP_PARTITION_MMAP_DATA, &model->at, &handle);
    return model->error == ESP_OK ? PORT_MODEL_FOUND : PORT_MODEL_FAILED;
}

/* ---------------------------------------------------------------------------------------------------------- the cores */

static void second_core(void *argument) {
    port *p = argument;
    p->run(p->self);
    xSemaphoreGive(p->ended);
    vTaskDelete(NULL);
}

bool port_start_core(port *p, void (*run)(void *self), void *self) {
    p->run = run;
    p->self = self;
    return xTaskCreatePinnedToCore(second_core, "second core", SECOND_STACK, p, SECOND_PRIORITY, &p->second, SECOND_CORE) ==
           pdPASS;
}

void port_sleep_core(port *p) {
    (void)p;
    (void)ulTaskNotifyTake(pdTRUE, portMAX_DELAY);
}

void port_wake_core(port *p) { xTaskNotifyGive(p->second); }

void port_end_core(port *p) { (void)xSemaphoreTake(p->ended, portMAX_DELAY); }

/* Called from code in internal RAM, and so in it. The other core has its own processor: nothing to give up. */
void IRAM_ATTR port_spin(uint32_t turn) { (void)turn; }
