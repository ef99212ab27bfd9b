/* Start of a program without a C library, and the two calls of Linux that it makes. The compiler's calling convention
 * is call0: the stack in a1, the return address in a0, arguments from a2 up. A system call has its number in a2, its
 * arguments in a6, a3, a4. */

#define SYSTEM_WRITE 13
#define SYSTEM_EXIT 118

    .text
    .literal_position

/* Entered with the stack in a1, of which the low bits may be anything. */
    .align  4
    .global _start
    .type   _start, @function
_start:
    movi    a2, -16
    and     a1, a1, a2
    movi    a0, 0
    call0   main
    mov     a6, a2
    movi    a2, SYSTEM_EXIT
    syscall
    .size   _start, . - _start

/* int32_t system_write(int32_t file, const void *bytes, uint32_t n) */
    .align  4
    .global system_write
    .type   system_write, @function
system_write:
    mov     a6, a2
    movi    a2, SYSTEM_WRITE
    syscall
    ret
    .size   system_write, . - system_write
