void um_time_stamp(struct uml_pt_regs *regs, int length);
unsigned int um_time_stamps_lend(unsigned long long *now, unsigned long long *last);
void um_time_stamps_settle(unsigned long long last, unsigned int used);

/* Answers rdtsc (0f 31) and rdtscp (0f 01 f9) of a traced process. */
static int time_stamp_read(int pid, siginfo_t *si, struct uml_pt_regs *regs)
{
	long code;
	int length;

	if (si->si_code != SI_KERNEL)
		return 0;
	code = ptrace(PTRACE_PEEKTEXT, pid, (void *) UPT_IP(regs), 0);
	if ((code & 0xffff) == 0x310f)
		length = 2;
	else if ((code & 0xffffff) == 0xf9010f)
		length = 3;
	else
		return 0;
	um_time_stamp(regs, length);
	return 1;
}
