// The hash kernel as nvcc compiled it (PTX in a fat binary), carried as data for cuModuleLoadData.
    .section .rodata
    .balign 16
    .global tidemark_hash_fatbin
    .hidden tidemark_hash_fatbin
tidemark_hash_fatbin:
    .incbin TIDEMARK_HASH_FATBIN_FILE
    .section .note.GNU-stack, "", %progbits
