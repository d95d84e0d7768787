// kcp-pair is a kcp-go client that logs in and asks, and a kcp-go server that
// answers as channeld does. See README.md beside it.
package main

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"sort"
	"sync"
	"time"

	kcp "github.com/xtaci/kcp-go"
)

// Frames of the gateway's protocol: AUTH and its answer.
var (
	auth     = fromHex("43480012000a1020012a0c0a0474657374120474657374")
	authDone = fromHex("4348000a000a08180120012a021002")
)

// LIST_CHANNEL with a stub, by which the answer is known; an answer without
// channels is the same.
func list(stub uint64) []byte {
	message := append([]byte{0x18}, binary.AppendUvarint(nil, stub)...)
	message = append(message, 0x20, 0x05, 0x2a, 0x00)
	head := []byte{0x43, 0x48, 0, byte(2 + len(message)), 0, 0x0a, byte(len(message))}
	return append(head, message...)
}

// The stubs of the messages in a frame, which may hold several answers.
func stubs(frame []byte) []uint64 {
	var found []uint64
	for rest := frame[5:]; len(rest) > 0; {
		_, n := binary.Uvarint(rest)
		size, m := binary.Uvarint(rest[n:])
		message := rest[n+m : n+m+int(size)]
		rest = rest[n+m+int(size):]
		for len(message) > 0 {
			tag, n := binary.Uvarint(message)
			value, m := binary.Uvarint(message[n:])
			message = message[n+m:]
			if tag == 0x18 {
				found = append(found, value)
			}
			if tag&7 == 2 {
				message = message[value:]
			}
		}
	}
	return found
}

func fromHex(text string) []byte {
	bytes, err := hex.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return bytes
}

// Reads whole frames from a connection until it ends.
func frames(conn net.Conn, each func(frame []byte)) {
	buffer, room := []byte{}, make([]byte, 1<<16)
	for {
		n, err := conn.Read(room)
		if err != nil {
			return
		}
		buffer = append(buffer, room[:n]...)
		for len(buffer) >= 5 {
			size := 5 + int(binary.BigEndian.Uint16(buffer[2:]))
			if len(buffer) < size {
				break
			}
			each(buffer[:size])
			buffer = buffer[size:]
		}
	}
}

func serve(at string) error {
	listener, err := kcp.Listen(at)
	if err != nil {
		return err
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			return err
		}
		go frames(conn, func(frame []byte) {
			answer := frame
			if len(frame) == len(auth) {
				answer = authDone
			}
			conn.Write(answer)
		})
	}
}

// One connection asks every `every`, whether or not it has been answered, and
// returns how long each answer took.
func ask(to string, first, every, last time.Duration) ([]time.Duration, int, error) {
	conn, err := kcp.Dial(to)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	time.Sleep(first)
	var mu sync.Mutex
	asked := map[uint64]time.Time{}
	var took []time.Duration
	loggedIn := make(chan struct{})
	var once sync.Once
	go frames(conn, func(frame []byte) {
		mu.Lock()
		defer mu.Unlock()
		once.Do(func() { close(loggedIn) })
		for _, stub := range stubs(frame) {
			if at, ok := asked[stub]; ok {
				took = append(took, time.Since(at))
				delete(asked, stub)
			}
		}
	})
	if _, err := conn.Write(auth); err != nil {
		return nil, 0, err
	}
	select {
	case <-loggedIn:
	case <-time.After(20 * time.Second):
		return nil, 0, io.ErrNoProgress
	}
	end := time.Now().Add(last)
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	// Stub 1 is the login's.
	for stub := uint64(2); ; stub++ {
		now := <-ticker.C
		if now.After(end) {
			break
		}
		mu.Lock()
		asked[stub] = now
		mu.Unlock()
		if _, err := conn.Write(list(stub)); err != nil {
			return nil, 0, err
		}
	}
	// Late answers count as well.
	time.Sleep(5 * time.Second)
	mu.Lock()
	defer mu.Unlock()
	return append([]time.Duration(nil), took...), len(asked), nil
}

func play(to string, connections int, every, last time.Duration) error {
	var mu sync.Mutex
	var wait sync.WaitGroup
	var all []time.Duration
	missing, failed := 0, 0
	for i := 0; i < connections; i++ {
		wait.Add(1)
		go func() {
			defer wait.Done()
			// Not in step with one another.
			first := every * time.Duration(i) / time.Duration(connections)
			took, left, err := ask(to, first, every, last)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed++
			}
			all = append(all, took...)
			missing += left
		}()
	}
	wait.Wait()
	if len(all) == 0 {
		return fmt.Errorf("nothing was answered at %s", to)
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(share float64) float64 {
		index := int(share*float64(len(all))+0.999999) - 1
		return float64(all[max(index, 0)].Microseconds()) / 1000
	}
	fmt.Printf("answers %d missing %d failed %d p50_ms %.1f p90_ms %.1f p99_ms %.1f max_ms %.1f\n",
		len(all), missing, failed, at(0.5), at(0.9), at(0.99), at(1))
	return nil
}

func main() {
	listen := flag.String("serve", "", "serve at this address")
	to := flag.String("to", "", "ask the server at this address")
	connections := flag.Int("connections", 30, "connections at once")
	every := flag.Duration("every", 100*time.Millisecond, "between two questions of a connection")
	last := flag.Duration("for", 20*time.Second, "how long questions are asked")
	flag.Parse()
	var err error
	switch {
	case *listen != "":
		err = serve(*listen)
	case *to != "":
		err = play(*to, *connections, *every, *last)
	default:
		flag.Usage()
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kcp-pair:", err)
		os.Exit(1)
	}
}
