// Entries of the driver seam. Each driver name is an export that jumps through its slot; hooked
// names have the hidden entry only (tidemark_real_NAME), and their export is C++. A slot starts
// empty; the first call through an empty slot keeps every argument register, asks tidemark_resolve_slot (which
// opens the real driver and fills all slots) and jumps on, so the callee sees the caller's frame.
//
// Empty slots rather than pointers to lazy entries: the library then needs no relocation for them,
// and every process of a preloaded job pays for relocations, CUDA or not.

#if defined(__x86_64__)

        .macro  ENTRY_BODY index name
        .cfi_startproc
        endbr64
        movq    tidemark_slots + 8 * \index(%rip), %r11
        testq   %r11, %r11
        je      1f
        jmp     *%r11
1:      movl    $\index, %r11d
        jmp     tidemark_resolve_entry
        .cfi_endproc
        .endm

        .text
        .p2align 4
        .type   tidemark_resolve_entry, @function
tidemark_resolve_entry:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        andq    $-16, %rsp
        subq    $192, %rsp
        movq    %rdi, 0(%rsp)
        movq    %rsi, 8(%rsp)
        movq    %rdx, 16(%rsp)
        movq    %rcx, 24(%rsp)
        movq    %r8, 32(%rsp)
        movq    %r9, 40(%rsp)
        movq    %rax, 48(%rsp)
        movaps  %xmm0, 64(%rsp)
        movaps  %xmm1, 80(%rsp)
        movaps  %xmm2, 96(%rsp)
        movaps  %xmm3, 112(%rsp)
        movaps  %xmm4, 128(%rsp)
        movaps  %xmm5, 144(%rsp)
        movaps  %xmm6, 160(%rsp)
        movaps  %xmm7, 176(%rsp)
        movl    %r11d, %edi
        call    tidemark_resolve_slot
        movq    %rax, %r11
        movq    0(%rsp), %rdi
        movq    8(%rsp), %rsi
        movq    16(%rsp), %rdx
        movq    24(%rsp), %rcx
        movq    32(%rsp), %r8
        movq    40(%rsp), %r9
        movq    48(%rsp), %rax
        movaps  64(%rsp), %xmm0
        movaps  80(%rsp), %xmm1
        movaps  96(%rsp), %xmm2
        movaps  112(%rsp), %xmm3
        movaps  128(%rsp), %xmm4
        movaps  144(%rsp), %xmm5
        movaps  160(%rsp), %xmm6
        movaps  176(%rsp), %xmm7
        leave
        .cfi_def_cfa %rsp, 8
        jmp     *%r11
        .cfi_endproc
        .size   tidemark_resolve_entry, . - tidemark_resolve_entry

#elif defined(__aarch64__)

        .macro  ENTRY_BODY index name
        .cfi_startproc
        hint    #34
        adrp    x16, tidemark_slots + 8 * \index
        ldr     x16, [x16, #:lo12:(tidemark_slots + 8 * \index)]
        cbz     x16, 1f
        br      x16
1:      mov     w17, #\index
        b       tidemark_resolve_entry
        .cfi_endproc
        .endm

        .text
        .p2align 4
        .type   tidemark_resolve_entry, @function
tidemark_resolve_entry:
        .cfi_startproc
        stp     x29, x30, [sp, #-224]!
        .cfi_def_cfa_offset 224
        .cfi_offset x29, -224
        .cfi_offset x30, -216
        mov     x29, sp
        stp     x0, x1, [sp, #16]
        stp     x2, x3, [sp, #32]
        stp     x4, x5, [sp, #48]
        stp     x6, x7, [sp, #64]
        str     x8, [sp, #80]
        stp     q0, q1, [sp, #96]
        stp     q2, q3, [sp, #128]
        stp     q4, q5, [sp, #160]
        stp     q6, q7, [sp, #192]
        mov     w0, w17
        bl      tidemark_resolve_slot
        mov     x16, x0
        ldp     x0, x1, [sp, #16]
        ldp     x2, x3, [sp, #32]
        ldp     x4, x5, [sp, #48]
        ldp     x6, x7, [sp, #64]
        ldr     x8, [sp, #80]
        ldp     q0, q1, [sp, #96]
        ldp     q2, q3, [sp, #128]
        ldp     q4, q5, [sp, #160]
        ldp     q6, q7, [sp, #192]
        ldp     x29, x30, [sp], #224
        .cfi_restore x29
        .cfi_restore x30
        .cfi_def_cfa_offset 0
        br      x16
        .cfi_endproc
        .size   tidemark_resolve_entry, . - tidemark_resolve_entry

#else
#error "The driver seam is written for x86-64 and aarch64."
#endif

        .macro  HOOKED index name
        .p2align 4
        .globl  tidemark_real_\name
        .hidden tidemark_real_\name
        .type   tidemark_real_\name, %function
tidemark_real_\name:
        ENTRY_BODY \index \name
        .size   tidemark_real_\name, . - tidemark_real_\name
        .endm

        .macro  FORWARD index name
        .p2align 4
        .globl  \name
        .type   \name, %function
\name:
        ENTRY_BODY \index \name
        .size   \name, . - \name
        .endm

        .hidden tidemark_slots
        .hidden tidemark_resolve_slot
#include "forward_table.inc"

        .section .note.GNU-stack, "", %progbits
