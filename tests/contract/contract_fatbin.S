// The contract kernels as nvcc compiled them, carried as data for cuModuleLoadData.
    .section .rodata
    .balign 16
    .global contract_fatbin
contract_fatbin:
    .incbin CONTRACT_FATBIN_FILE
    .section .note.GNU-stack, "", %progbits
