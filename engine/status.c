/* The sentence of each status. */
#include "chiplm.h"

const char *chiplm_status_text(chiplm_status status) {
    switch (status) {
    case CHIPLM_OK:
        return "no error";
    case CHIPLM_ERR_ARGUMENT:
        return "an argument is null or outside its range: see chiplm.h for what the function accepts";
    case CHIPLM_ERR_ALIGNMENT:
        return "memory is not aligned: images, arenas and caches start at a multiple of 64, bound tensors of 16, "
               "memory for encoding of 4";
    case CHIPLM_ERR_SIZE:
        return "the file is shorter than an image header: it was cut off or is no image; export it again";
    case CHIPLM_ERR_MAGIC:
        return "the file is no chiplm image: pass the model.clm of an export folder";
    case CHIPLM_ERR_VERSION:
        return "the image has a version this engine does not read: export it again with this chiplm";
    case CHIPLM_ERR_HEADER_BYTES:
        return "the header has the wrong length: the file is damaged or from another chiplm; export it again";
    case CHIPLM_ERR_FLAGS:
        return "the image sets a flag this engine does not know: use the chiplm that wrote it, or export it again";
    case CHIPLM_ERR_FILE_BYTES:
        return "the file is longer or shorter than its header says; copy it again, or export again if this is the only copy";
    case CHIPLM_ERR_FILE_CRC:
        return "the checksum of the file is wrong: its bytes were changed; copy it again, or export again if this is the only copy";
    case CHIPLM_ERR_RESERVED:
        return "reserved bytes or padding are not zero: the image was not written by this version; export it again";
    case CHIPLM_ERR_SECTIONS:
        return "the section table is wrong: a section is missing, unknown, misplaced or overlaps; export it again";
    case CHIPLM_ERR_SECTION_CRC:
        return "the checksum of a section is wrong: its bytes were changed; export the image again";
    case CHIPLM_ERR_MODEL:
        return "a size or constant of the model is impossible: export the image again from its checkpoint";
    case CHIPLM_ERR_TENSOR_NAME:
        return "the tensor table does not list the tensor that the model's sizes imply; export the image again";
    case CHIPLM_ERR_TENSOR_SHAPE:
        return "a tensor does not have the shape that the model's sizes imply; export the image again";
    case CHIPLM_ERR_TENSOR_BITS:
        return "a tensor has bits, group, scale type or tier that do not exist; export the image again";
    case CHIPLM_ERR_TENSOR_FLOAT:
        return "a matrix has 32-bit weights: the engine runs 2, 4 or 8 bits; set quant.weights.bits and export again";
    case CHIPLM_ERR_TENSOR_RANGE:
        return "a tensor's bytes are misplaced: outside DATA, on another tensor, or of the wrong length; export again";
    case CHIPLM_ERR_TENSOR_CRC:
        return "the checksum of a tensor is wrong: its bytes were changed; export the image again";
    case CHIPLM_ERR_CODE:
        return "a tensor holds a code that no quantiser writes: its bytes were changed; export the image again";
    case CHIPLM_ERR_SCALE:
        return "a tensor holds a scale that is negative, subnormal or not finite; export the image again";
    case CHIPLM_ERR_FLOAT:
        return "a float tensor holds a value that is subnormal or not finite; export the image again";
    case CHIPLM_ERR_ROPE:
        return "the rotary tables have the wrong size or an impossible entry; export the image again";
    case CHIPLM_ERR_TOKENIZER:
        return "the image has no tokenizer, or one that contradicts itself or the model; use ids, or export or import the model "
               "again with its tokenizer";
    case CHIPLM_ERR_GOLDEN:
        return "the golden section contradicts itself or the model; export the image again";
    case CHIPLM_ERR_ARENA:
        return "memory is too small: give an arena of chiplm_arena_bytes and a cache of chiplm_cache_bytes for the same options, a "
               "tensor's copy all its bytes, and to encode a text the scratch of chiplm_encode_scratch";
    case CHIPLM_ERR_ID:
        return "a token id is outside the vocabulary: encode the text with the tokenizer of this image";
    case CHIPLM_ERR_CONTEXT:
        return "the sequence is longer than context_length: reset, or feed fewer tokens";
    case CHIPLM_ERR_NOT_FINITE:
        return "a value became infinite or not a number: the weights are unusable; take an earlier checkpoint";
    case CHIPLM_ERR_DIGEST:
        return "the golden run gave other bits than the exporter: image, memory or compiler is at fault; "
               "export again, and build without -ffast-math and with -ffp-contract=off";
    case CHIPLM_ERR_TEMPERATURE:
        return "the temperature must be 0 (the best token always) or a positive number; try 0.8";
    case CHIPLM_ERR_CLUSTERS:
        return "the clusters of the head are missing or contradict the model: export the image again with clusters, or "
               "search in full";
    case CHIPLM_ERR_FUSED:
        return "the engine was compiled so that products and sums are fused, which gives other bits: add -ffp-contract=off "
               "(or -std=c11 with gcc) to the compiler's flags";
    case CHIPLM_ERR_ROOM:
        return "the text has more ids than there is room for: give more room, or a shorter text";
    case CHIPLM_STATUS_COUNT:
        break;
    }
    return "unknown status: engine and caller were built from different versions";
}
