
/* Newer versions lack it, and libraries of programs end where it is not found. */
	.text
	.weak __vdso_getcpu
	.type __vdso_getcpu, @function
__vdso_getcpu:
	xorl %eax, %eax
	testq %rdi, %rdi
	je 1f
	movl %eax, (%rdi)
1:	testq %rsi, %rsi
	je 2f
	movl %eax, (%rsi)
2:	ret
	.size __vdso_getcpu, . - __vdso_getcpu
