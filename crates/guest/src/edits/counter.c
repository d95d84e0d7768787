/* What the time-stamp counter showed last, to any process. */
static unsigned long long um_time_stamp_last;

/* What it shows now: nanoseconds, and never the same twice. */
unsigned long long um_time_stamp_next(void);
unsigned long long um_time_stamp_next(void)
{
	um_time_stamp_last = max_t(unsigned long long, um_time_stamp_last + 1, ktime_get_ns());
	return um_time_stamp_last;
}

/*
 * Lends the counter to a process that is about to run: what the clock tells, what the
 * counter showed last, and how often it may be read before that costs anything.
 */
unsigned int um_time_stamps_lend(unsigned long long *now, unsigned long long *last);
unsigned int um_time_stamps_lend(unsigned long long *now, unsigned long long *last)
{
	unsigned int asked;

	*last = um_time_stamp_last;
	if (!um_clock || um_clock_set_at != time_travel_time ||
	    READ_ONCE(um_clock->reads) > FREE_READS)
		return 0;
	*now = um_clock->monotonic_ns;
	asked = um_clock_read_at == time_travel_time ? um_clock_asked : 0;
	return asked < FREE_READS ? FREE_READS - asked : 0;
}

/* Takes it back. */
void um_time_stamps_settle(unsigned long long last, unsigned int used);
void um_time_stamps_settle(unsigned long long last, unsigned int used)
{
	if (!used)
		return;
	um_time_stamp_last = last;
	if (um_clock_read_at != time_travel_time)
		um_clock_asked = 0;
	um_clock_asked += used;
	um_clock_read_at = time_travel_time;
}
