/* Answers rdtsc (0f 31) and rdtscp (0f 01 f9), or says that the kernel is to. */
static __always_inline int time_stamp_read(struct stub_data *d, siginfo_t *info, ucontext_t *uc)
{
	greg_t *regs = uc->uc_mcontext.gregs;
	const unsigned char *code = (void *) regs[REG_RIP];
	int length;

	if (info->si_code != SI_KERNEL || code[0] != 0x0f)
		return 0;
	if (code[1] == 0x31)
		length = 2;
	else if (code[1] == 0x01 && code[2] == 0xf9)
		length = 3;
	else
		return 0;
	if (!d->time_stamps_left) {
		d->time_stamp_length = length;
		return 0;
	}
	d->time_stamps_left--;
	d->time_stamp_last++;
	if (d->time_stamp_last < d->time_stamp_now)
		d->time_stamp_last = d->time_stamp_now;
	regs[REG_RAX] = d->time_stamp_last & 0xffffffff;
	regs[REG_RDX] = d->time_stamp_last >> 32;
	if (length == 3)
		regs[REG_RCX] = 0;
	regs[REG_RIP] += length;
	return 1;
}
