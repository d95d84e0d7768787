// Two kcp-go sessions over a path in memory, in virtual time: what they send
// is what our engine is held against.
//
// The script of each conversation comes on standard input, one a line; every
// datagram that a session sends goes to standard output with its time. The
// test in Rust (kcp_go_differential.rs) writes the one and reads the other.
package oracle

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "unsafe" // for go:linkname

	kcp "github.com/xtaci/kcp-go"
)

// kcp-go counts its milliseconds from here.
//
//go:linkname refTime github.com/xtaci/kcp-go.refTime
var refTime time.Time

// What one conversation is.
type script struct {
	seed                            uint64
	conversation                    uint32
	nodelay, interval, resend, nc   int
	mtu, sendWindow, receiveWindow  int
	clockMs                         uint64
	secondStartNs, untilNs          int64
	lossPerMille, duplicatePerMille uint64
	delayUs, jitterUs               [2]uint64
	pauseFromNs, pauseUntilNs       int64 // side 1 does not read
	dataShards, parityShards        int   // 0: no forward error correction
	writes                          []write
}

type write struct {
	side  int
	ns    int64
	bytes int
}

func (s *script) parse(line string) error {
	fields := strings.Fields(line)
	const fixed = 22
	if len(fields) < fixed {
		return errors.New("a line of the script is too short")
	}
	_, err := fmt.Sscan(strings.Join(fields[:fixed], " "),
		&s.seed, &s.conversation, &s.nodelay, &s.interval, &s.resend, &s.nc,
		&s.mtu, &s.sendWindow, &s.receiveWindow, &s.clockMs,
		&s.secondStartNs, &s.untilNs, &s.lossPerMille, &s.duplicatePerMille,
		&s.delayUs[0], &s.delayUs[1], &s.jitterUs[0], &s.jitterUs[1],
		&s.pauseFromNs, &s.pauseUntilNs, &s.dataShards, &s.parityShards)
	if err != nil {
		return err
	}
	for _, field := range fields[fixed:] {
		var w write
		if _, err := fmt.Sscanf(field, "%d:%d:%d", &w.side, &w.ns, &w.bytes); err != nil {
			return err
		}
		s.writes = append(s.writes, w)
	}
	return nil
}

// SplitMix64 of Steele et al., one step; the test in Rust has the same.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

// A number that depends on the datagram alone and on what it is asked for.
func (s *script) draw(side int, index, what uint64) uint64 {
	return mix(mix(mix(s.seed)+index*2+uint64(side)) + what)
}

// When copies of a datagram sent at `ns` arrive: none, one or two. Arrivals lie
// two nanoseconds past a microsecond, where neither timers nor writes lie.
func (s *script) arrivals(side int, index uint64, ns int64) []int64 {
	if s.draw(side, index, 0)%1000 < s.lossPerMille {
		return nil
	}
	copies := 1
	if s.draw(side, index, 1)%1000 < s.duplicatePerMille {
		copies = 2
	}
	var at []int64
	for i := 0; i < copies; i++ {
		us := s.delayUs[side] + s.draw(side, index, 2+uint64(i))%(s.jitterUs[side]+1)
		at = append(at, (ns/1000+int64(us))*1000+2)
	}
	return at
}

type arrival struct {
	ns    int64
	order int
	to    int
	bytes []byte
}

type arrivals []arrival

func (q arrivals) Len() int      { return len(q) }
func (q arrivals) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q arrivals) Less(i, j int) bool {
	return q[i].ns < q[j].ns || q[i].ns == q[j].ns && q[i].order < q[j].order
}
func (q *arrivals) Push(x any) { *q = append(*q, x.(arrival)) }
func (q *arrivals) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// A conversation being played.
type play struct {
	script  *script
	start   time.Time
	mu      sync.Mutex
	pending arrivals
	order   int
	sent    [2]uint64
	news    chan struct{}
	out     *bufio.Writer
	over    bool
}

// One end's socket.
type end struct {
	play *play
	side int
	in   chan []byte
	done chan struct{}
	once sync.Once
}

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "peer" }

func (e *end) ReadFrom(buffer []byte) (int, net.Addr, error) {
	select {
	case datagram := <-e.in:
		return copy(buffer, datagram), address{}, nil
	case <-e.done:
		return 0, nil, io.EOF
	}
}

func (e *end) WriteTo(datagram []byte, _ net.Addr) (int, error) {
	p := e.play
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return len(datagram), nil
	}
	ns := time.Since(p.start).Nanoseconds()
	var head [13]byte
	binary.LittleEndian.PutUint64(head[0:], uint64(ns))
	head[8] = byte(e.side)
	binary.LittleEndian.PutUint32(head[9:], uint32(len(datagram)))
	p.out.Write(head[:])
	p.out.Write(datagram)
	index := p.sent[e.side]
	p.sent[e.side]++
	for _, at := range p.script.arrivals(e.side, index, ns) {
		p.order++
		copied := append([]byte(nil), datagram...)
		heap.Push(&p.pending, arrival{at, p.order, 1 - e.side, copied})
	}
	select {
	case p.news <- struct{}{}:
	default:
	}
	return len(datagram), nil
}

func (e *end) Close() error                     { e.once.Do(func() { close(e.done) }); return nil }
func (e *end) LocalAddr() net.Addr              { return address{} }
func (e *end) SetDeadline(time.Time) error      { return nil }
func (e *end) SetReadDeadline(time.Time) error  { return nil }
func (e *end) SetWriteDeadline(time.Time) error { return nil }

func (p *play) session(side int) (*end, *kcp.UDPSession) {
	e := &end{play: p, side: side, in: make(chan []byte), done: make(chan struct{})}
	s := p.script
	session, err := kcp.NewConn3(s.conversation, address{}, nil, s.dataShards, s.parityShards, e)
	if err != nil {
		panic(err)
	}
	session.SetNoDelay(s.nodelay, s.interval, s.resend, s.nc)
	session.SetMtu(s.mtu)
	session.SetWindowSize(s.sendWindow, s.receiveWindow)
	// A reading that would wait returns at once.
	session.SetReadDeadline(time.Unix(1, 0))
	synctest.Wait()
	return e, session
}

// Waits until `ns`, or until something was sent.
func (p *play) sleep(ns int64) {
	timer := time.NewTimer(time.Duration(ns) - time.Since(p.start))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.news:
	}
	synctest.Wait()
}

func (p *play) run() {
	s := p.script
	p.start = time.Now()
	refTime = p.start.Add(-time.Duration(s.clockMs) * time.Millisecond)
	var ends [2]*end
	var sessions [2]*kcp.UDPSession
	var writers [2]chan []byte
	open := func(side int) {
		ends[side], sessions[side] = p.session(side)
		session, writes := sessions[side], make(chan []byte, len(s.writes))
		writers[side] = writes
		go func() {
			for bytes := range writes {
				session.Write(bytes)
			}
		}()
	}
	open(0)
	time.Sleep(time.Duration(s.secondStartNs))
	open(1)
	buffer := make([]byte, 1<<17)
	writes := s.writes
	for {
		now := time.Since(p.start).Nanoseconds()
		for side, session := range sessions {
			if side == 1 && now >= s.pauseFromNs && now < s.pauseUntilNs {
				continue
			}
			for {
				if _, err := session.Read(buffer); err != nil {
					break
				}
			}
		}
		next := s.untilNs
		if len(writes) > 0 && writes[0].ns < next {
			next = writes[0].ns
		}
		if s.pauseUntilNs > now && s.pauseUntilNs < next {
			next = s.pauseUntilNs
		}
		p.mu.Lock()
		if len(p.pending) > 0 && p.pending[0].ns < next {
			next = p.pending[0].ns
		}
		p.mu.Unlock()
		if next > now {
			p.sleep(next)
			continue
		}
		if next >= s.untilNs {
			break
		}
		if len(writes) > 0 && writes[0].ns <= now {
			bytes := make([]byte, writes[0].bytes)
			for i := range bytes {
				bytes[i] = byte(mix(s.seed+uint64(writes[0].ns)+uint64(i)) >> 7)
			}
			writers[writes[0].side] <- bytes
			writes = writes[1:]
			synctest.Wait()
			continue
		}
		p.mu.Lock()
		due := heap.Pop(&p.pending).(arrival)
		p.mu.Unlock()
		ends[due.to].in <- due.bytes
		synctest.Wait()
	}
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	for side := range sessions {
		close(writers[side])
		sessions[side].Close()
	}
	var end [13]byte
	end[8] = 255
	p.out.Write(end[:])
}

func TestOracle(t *testing.T) {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	for {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		s := &script{}
		if err := s.parse(line); err != nil {
			t.Fatal(err)
		}
		p := &play{script: s, news: make(chan struct{}, 1), out: out}
		synctest.Test(t, func(*testing.T) {
			p.news = make(chan struct{}, 1)
			p.run()
		})
		if err := out.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	// The framework's own words would end up among the datagrams.
	os.Exit(0)
}
