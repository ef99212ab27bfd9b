/* The image, built into the program: model.image from the folders that the assembler is told to search. */
    .section .rodata
    .balign 64
    .global image_start
image_start:
    .incbin "model.image"
    .global image_end
image_end:
