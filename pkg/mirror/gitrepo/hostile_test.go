// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// The race detector needs memory itself, and ten times as long to process gigabytes.

//go:build !race

package gitrepo_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
)

// Limits of the clients in these tests. A process may use twice the memory, because half of the heap may be garbage.
const (
	hostileMemory   = 32 << 20
	hostileTransfer = 48 << 20
)

// line returns text as a packet line.
func line(format string, arguments ...any) string {
	text := fmt.Sprintf(format, arguments...)
	return fmt.Sprintf("%04x%s", len(text)+4, text)
}

const flush = "0000"

// advertised returns the start of an advertisement over HTTP, with the capabilities of a basic server.
func advertised(service, tip string) string {
	name := "refs/heads/main"
	if tip == noTip {
		name = "capabilities^{}"
	}
	const capabilities = "shallow side-band-64k ofs-delta report-status"
	return line("# service=%s\n", service) + flush + line("%s %s\x00%s\n", tip, name, capabilities)
}

var (
	someTip = strings.Repeat("1", 40)
	noTip   = strings.Repeat("0", 40)
)

// forever writes the results of next until the reader closes the connection, or 8 GiB have been written.
func forever(out io.Writer, next func(i int) string) {
	buffered := bufio.NewWriterSize(out, 64<<10)
	for written, i := 0, 0; written < 8<<30; i++ {
		count, err := buffered.WriteString(next(i))
		if err != nil {
			return
		}
		written += count
	}
}

func repeated(text string) func(int) string { return func(int) string { return text } }

// hostileServer is an HTTP server that sends configured responses.
type hostileServer struct {
	// refs writes the advertisement of references, respond writes the response to a fetch or push.
	refs    func(out io.Writer, service string)
	respond func(out io.Writer, service string)
	// encoding, if set, is the Content-Encoding of each response.
	encoding string
}

func (s *hostileServer) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	if s.encoding != "" {
		response.Header().Set("Content-Encoding", s.encoding)
	}
	if request.Method == http.MethodGet {
		service := request.FormValue("service")
		response.Header().Set("Content-Type", "application/x-"+service+"-advertisement")
		s.refs(response, service)
		return
	}
	_, _ = io.Copy(io.Discard, request.Body)
	service := request.URL.Path[strings.LastIndexByte(request.URL.Path, '/')+1:]
	response.Header().Set("Content-Type", "application/x-"+service+"-result")
	s.respond(response, service)
}

// refsAt returns a function that writes the advertisement of one branch.
func refsAt(tip string) func(io.Writer, string) {
	return func(out io.Writer, service string) { _, _ = io.WriteString(out, advertised(service, tip)+flush) }
}

// fetched returns a function that writes the response to a fetch with a pack in packets.
func fetched(write func(out io.Writer)) func(io.Writer, string) {
	return func(out io.Writer, _ string) {
		_, _ = io.WriteString(out, flush+line("NAK\n"))
		packets := &packetWriter{out: bufio.NewWriterSize(out, 64<<10)}
		write(packets)
		if packets.err == nil {
			_, _ = packets.out.WriteString(flush)
			_ = packets.out.Flush()
		}
	}
}

// packetWriter writes data in packets of the first side band.
type packetWriter struct {
	out *bufio.Writer
	err error
}

func (w *packetWriter) Write(data []byte) (int, error) {
	size := len(data)
	for len(data) > 0 && w.err == nil {
		piece := data[:min(len(data), 65000)]
		data = data[len(piece):]
		_, w.err = w.out.WriteString(line("\x01%s", piece))
	}
	return size, w.err
}

func pack(content []byte) func(io.Writer, string) {
	return fetched(func(out io.Writer) { _, _ = out.Write(content) })
}

// hostile is a server and the error that a client must return.
type hostile struct {
	server    hostileServer
	operation string
	kind      gitrepo.Kind
	message   string
	// transfer, if set, replaces the default transfer limit.
	transfer int64
}

// talkingServer responds to a fetch with endless packets.
func talkingServer(next func(int) string) hostileServer {
	return hostileServer{refs: refsAt(someTip), respond: func(out io.Writer, _ string) { forever(out, next) }}
}

// reportingServer has no branch and responds to a push.
func reportingServer(start string, next func(int) string) hostileServer {
	return hostileServer{refs: refsAt(noTip), respond: func(out io.Writer, _ string) {
		_, _ = io.WriteString(out, start)
		forever(out, next)
	}}
}

func endlessRefs(next func(int) string) hostileServer {
	return hostileServer{refs: func(out io.Writer, service string) {
		_, _ = io.WriteString(out, advertised(service, someTip))
		forever(out, next)
	}}
}

// hostilePackets returns servers that send endless packets.
func hostilePackets() map[string]hostile {
	const much = 64 << 30
	names := func(i int) string { return line("%040x refs/heads/%d\n", i+1, i) }
	zipped := func(content func(io.Writer)) func(io.Writer, string) {
		return func(out io.Writer, _ string) {
			writer := gzip.NewWriter(out)
			content(writer)
			_ = writer.Close()
		}
	}
	return map[string]hostile{
		"references": {server: endlessRefs(names), operation: "Check", kind: gitrepo.TooLarge, message: "more than 48 MiB"},
		"references, within the transfer limit": {
			server: endlessRefs(repeated(strings.Repeat(names(0), 1000))), operation: "Load",
			kind: gitrepo.TooLarge, message: "more than 256 MiB of references", transfer: much,
		},
		"names of references": {
			server:    endlessRefs(func(i int) string { return line("%040x refs/heads/%060000d\n", i+1, i) }),
			operation: "Check", kind: gitrepo.TooLarge, message: "more than 48 MiB",
		},
		"peeled references": {
			server:    endlessRefs(func(i int) string { return line("%040x refs/tags/%d^{}\n", i+1, i) }),
			operation: "Load", kind: gitrepo.TooLarge, message: "more than 48 MiB",
		},
		"the same reference": {
			server:    endlessRefs(func(i int) string { return line("%040x refs/heads/main\n", i+1) }),
			operation: "Load", kind: gitrepo.TooLarge, message: "more than 48 MiB",
		},
		"commits of a shallow repository": {
			server:    endlessRefs(func(i int) string { return line("shallow %040x", i+1) }),
			operation: "Load", kind: gitrepo.TooLarge, message: "more than 48 MiB",
		},
		"an advertisement that inflates": {
			server: hostileServer{encoding: "gzip", refs: zipped(func(out io.Writer) {
				_, _ = io.WriteString(out, advertised("git-upload-pack", someTip))
				forever(out, names)
			})},
			// It is not decompressed, because the limit would not apply to compressed data without output.
			operation: "Load", kind: gitrepo.Protocol, message: "does not speak",
		},
		"commits without parents": {
			server:    talkingServer(func(i int) string { return line("shallow %040x", i+1) }),
			operation: "Load", kind: gitrepo.TooLarge, message: "16 MiB of commits without parents",
		},
		"acknowledgements": {
			server: hostileServer{refs: refsAt(someTip), respond: func(out io.Writer, _ string) {
				_, _ = io.WriteString(out, flush)
				forever(out, repeated(line("NAK\n")))
			}},
			operation: "Load", kind: gitrepo.TooLarge, message: "16 MiB of acknowledgements",
		},
		"progress": {
			server: hostileServer{refs: refsAt(someTip), respond: func(out io.Writer, _ string) {
				_, _ = io.WriteString(out, flush+line("NAK\n"))
				forever(out, repeated(line("\x02%s", strings.Repeat("counting ", 1000))))
			}},
			operation: "Load", kind: gitrepo.TooLarge, message: "16 MiB of progress",
		},
		"empty progress": {
			server: hostileServer{refs: refsAt(someTip), respond: func(out io.Writer, _ string) {
				_, _ = io.WriteString(out, flush+line("NAK\n"))
				forever(out, repeated(line("\x02")))
			}},
			operation: "Contains", kind: gitrepo.TooLarge, message: "16 MiB of progress",
		},
		"commands in a report": {
			server:    reportingServer("", bandOne(line("unpack ok\n"), func(i int) string { return line("ok refs/heads/%d\n", i) })),
			operation: "Push", kind: gitrepo.TooLarge, message: "1 MiB of its report",
		},
		"messages of hooks": {
			server:    reportingServer("", repeated(line("\x02%s", strings.Repeat("a hook ", 1000)))),
			operation: "Push", kind: gitrepo.TooLarge, message: "16 MiB of progress",
		},
		"data after a report": {
			server: reportingServer(line("\x01%s", line("unpack ok\n")+line("ok refs/heads/main\n")+flush),
				repeated(line("\x01%s", strings.Repeat("x", 60000)))),
			// The push has succeeded: data after the report is ignored.
			operation: "Push",
		},
		"messages after a report": {
			server: reportingServer(line("\x01%s", line("unpack ok\n")+line("ok refs/heads/main\n")+flush),
				repeated(line("\x02%s", strings.Repeat("x", 60000)))),
			operation: "Push",
		},
	}
}

// bandOne returns a function that returns packets of the first side band, preceded by one with the start.
func bandOne(start string, next func(int) string) func(int) string {
	return func(i int) string {
		if i == 0 {
			return line("\x01%s", start)
		}
		return line("\x01%s", next(i))
	}
}

// hostilePacks returns servers with small packs that inflate to large objects.
func hostilePacks() map[string]hostile {
	load := func(content func(io.Writer, string), message string) hostile {
		return hostile{
			server: hostileServer{refs: refsAt(someTip), respond: content}, operation: "Load", kind: gitrepo.TooLarge, message: message,
		}
	}
	const memory, transfer = "32 MiB of memory", "more than 48 MiB"
	base := packed(packTree, bytes.Repeat([]byte("x"), 1<<20))
	large := delta(len(base), copying(1<<20, 8<<30))
	doubling := [][]byte{packed(packTree, bytes.Repeat([]byte("x"), 1<<16))}
	for size, i := uint64(1<<16), 0; i < 24; i++ {
		doubling = append(doubling, delta(len(doubling[i]), copying(size, 2*size)))
		size *= 2
	}
	wide, wideTip := nested(12, 10)
	deep, deepTip := nested(1000, 1)
	at := func(content []byte, tip [20]byte, message string) hostile {
		h := load(pack(content), message)
		h.server.refs = refsAt(fmt.Sprintf("%x", tip))
		return h
	}
	names, namesTip := named(200, 40<<10)
	long := at(names, namesTip, "longer than 4096 bytes")
	long.kind = gitrepo.Protocol
	tooDeep := at(deep, deepTip, "more than 512 levels")
	tooDeep.kind = gitrepo.Protocol
	longer := load(pack(packOf(1, zeros(packTree, 10, 32<<20))), "exceeds declared size")
	longer.kind = gitrepo.Protocol
	return map[string]hostile{
		"names of directories":         long,
		"a tree that claims 40 MiB":    load(pack(packOf(1, zeros(packTree, 40<<20, 100))), memory),
		"a tree that claims 8 GiB":     load(pack(packOf(1, zeros(packTree, 8<<30, 100))), transfer),
		"a blob that claims 1 PiB":     load(pack(packOf(1, zeros(packBlob, 1<<50, 100))), transfer),
		"a tree longer than its claim": longer,
		"a delta that makes 8 GiB":     load(pack(packOf(2, base, large)), transfer),
		"a delta that makes 40 MiB":    load(pack(packOf(2, base, delta(len(base), copying(1<<20, 40<<20)))), memory),
		"deltas that double":           load(pack(packOf(uint32(len(doubling)), doubling...)), memory),
		"trees with billions of files": at(wide, wideTip, memory),
		"deeply nested directories":    tooDeep,
		"endless small objects":        load(fetched(smallObjects(packCommit)), memory),
		"endless empty trees": load(fetched(func(out io.Writer) {
			_, _ = out.Write(packOf(1 << 31))
			forever(out, repeated(string(packed(packTree, nil))))
		}), memory),
		"endless blobs": load(fetched(func(out io.Writer) {
			_, _ = out.Write(packOf(1 << 31))
			forever(out, repeated(string(zeros(packBlob, 1<<20, 1<<20))))
		}), transfer),
		"commits for Contains": {
			server:    hostileServer{refs: refsAt(someTip), respond: fetched(smallObjects(packCommit))},
			operation: "Contains", kind: gitrepo.TooLarge, message: memory,
		},
	}
}

// smallObjects returns a function that writes endless distinct objects.
func smallObjects(kind byte) func(io.Writer) {
	return func(out io.Writer) {
		_, _ = out.Write(packOf(1 << 31))
		forever(out, func(i int) string { return string(packed(kind, binary.BigEndian.AppendUint64(nil, uint64(i)))) })
	}
}

// hostileBlobs returns servers that are asked for the content of a file. The branch is empty at the first advertisement.
func hostileBlobs() map[string]hostile {
	search := func(respond func(io.Writer, string), message string) hostile {
		return hostile{
			server: hostileServer{refs: onceEmpty(), respond: respond}, operation: "Contents", kind: gitrepo.TooLarge, message: message,
		}
	}
	const transfer = "more than 48 MiB"
	first := packed(packBlob, []byte(strings.Repeat("x", 60<<10)))
	return map[string]hostile{
		"endless files": search(fetched(smallObjects(packBlob)), transfer),
		"endless files of the maximum size": search(fetched(func(out io.Writer) {
			_, _ = out.Write(packOf(1 << 31))
			forever(out, func(i int) string {
				return string(packed(packBlob, binary.BigEndian.AppendUint64(bytes.Repeat([]byte("x"), 60<<10), uint64(i))))
			})
		}), transfer),
		"endless deltas against a file": search(fetched(func(out io.Writer) {
			_, _ = out.Write(packOf(1<<31, first))
			distance := len(first)
			forever(out, func(int) string {
				object := delta(distance, copying(60<<10, 60<<10))
				distance += len(object)
				return string(object)
			})
		}), transfer),
		"a file's delta that makes 8 GiB": search(fetched(func(out io.Writer) {
			_, _ = out.Write(packOf(1<<31, first, delta(len(first), copying(60<<10, 8<<30))))
			forever(out, repeated(string(packed(packTree, []byte("x")))))
		}), transfer),
	}
}

// onceEmpty returns a function that advertises no branch to the first request, and one to later requests.
func onceEmpty() func(io.Writer, string) {
	requests := 0
	return func(out io.Writer, service string) {
		tip := someTip
		if requests == 0 {
			tip = noTip
		}
		requests++
		refsAt(tip)(out, service)
	}
}

// TestHostileServers tests servers that send endless or highly compressed data at each layer of the protocol. The data that
// a client reads must be bounded, and so must its memory.
func TestHostileServers(t *testing.T) {
	for layer, cases := range map[string]map[string]hostile{"packets": hostilePackets(), "packs": hostilePacks(), "blobs": hostileBlobs()} {
		for name, test := range cases {
			t.Run(layer+"/"+name, func(t *testing.T) {
				server := httptest.NewServer(&test.server)
				defer server.Close()
				task := clientTask{
					URL: server.URL + "/repository", Operation: test.operation, Limits: clientLimits{Memory: hostileMemory, Transfer: hostileTransfer},
				}
				if test.transfer > 0 {
					task.Limits.Transfer = test.transfer
				}
				outcome := startClient(t, task)
				if outcome.Kind != test.kind || !strings.Contains(outcome.Message, test.message) {
					t.Errorf("client returned %s, %q; want %s, %q", outcome.Kind, outcome.Message, test.kind, test.message)
				}
				outcome.checkMemory(t)
			})
		}
	}
}

// checkMemory fails the test if the client used more than twice its memory limit.
func (o clientOutcome) checkMemory(t *testing.T) {
	t.Helper()
	t.Logf("resident memory grew by %d MiB, the heap by %d MiB; limit %d MiB", o.Resident>>20, o.Heap>>20, hostileMemory>>20)
	if o.Resident > 2*hostileMemory {
		t.Errorf("client used %d MiB of memory, more than twice the limit of %d MiB", o.Resident>>20, hostileMemory>>20)
	}
}

// TestHostileHTTP tests servers that fail before the Git protocol starts.
func TestHostileHTTP(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-receive-pack-advertisement\r\n"
	for name, respond := range map[string]func(net.Conn){
		"headers": func(out net.Conn) {
			_, _ = io.WriteString(out, head)
			forever(out, func(i int) string { return fmt.Sprintf("X-%d: x\r\n", i) })
		},
		"one header":  func(out net.Conn) { _, _ = io.WriteString(out, head+"X: "); forever(out, repeated("xxxxxxxx")) },
		"early hints": func(out net.Conn) { forever(out, repeated("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")) },
		"the status":  func(out net.Conn) { forever(out, repeated("HTTP")) },
		"chunk extension": func(out net.Conn) {
			_, _ = io.WriteString(out, head+"Transfer-Encoding: chunked\r\n\r\n1;")
			forever(out, repeated("x"))
		},
		"another protocol": func(out net.Conn) {
			_, _ = io.WriteString(out, "HTTP/1.1 101 Switching Protocols\r\nContent-Type: text/plain\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			_, _ = io.Copy(io.Discard, out)
		},
		"a refusal": func(out net.Conn) {
			_, _ = io.WriteString(out, "HTTP/1.1 500 No\r\nContent-Type: text/plain\r\n\r\n")
			forever(out, repeated("no "))
		},
	} {
		t.Run(name, func(t *testing.T) {
			outcome := startClient(t, clientTask{
				URL: "http://" + listen(t, respond) + "/repository", Operation: "Check",
				Limits: clientLimits{Memory: hostileMemory, Transfer: hostileTransfer},
			})
			if outcome.Kind == "" {
				t.Errorf("client returned %q; want an error", outcome.Message)
			}
			outcome.checkMemory(t)
		})
	}
}

// listen starts a server that responds to each connection with respond, and returns its address.
func listen(t *testing.T, respond func(net.Conn)) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = connection.Read(make([]byte, 4<<10)) // The request.
			respond(connection)
			_ = connection.Close()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		<-done
	})
	return listener.Addr().String()
}

// TestHostileSSH tests servers that send endless data over SSH.
func TestHostileSSH(t *testing.T) {
	ends := map[string]gitrepo.Kind{
		"references": gitrepo.TooLarge, "standard error": gitrepo.TooLarge, "requests": gitrepo.TooLarge, "not Git": gitrepo.Protocol,
	}
	for name, respond := range map[string]func(*ssh.ServerConn, ssh.Channel){
		"references": func(_ *ssh.ServerConn, channel ssh.Channel) {
			_, _ = io.WriteString(channel, line("%s refs/heads/main\x00report-status\n", someTip))
			forever(channel, func(i int) string { return line("%040x refs/heads/%d\n", i+1, i) })
		},
		"standard error": func(_ *ssh.ServerConn, channel ssh.Channel) { forever(channel.Stderr(), repeated("an error\n")) },
		"not Git":        func(_ *ssh.ServerConn, channel ssh.Channel) { forever(channel, repeated("login: ")) },
		"requests": func(connection *ssh.ServerConn, _ ssh.Channel) {
			payload := bytes.Repeat([]byte("x"), 30<<10)
			for sent := 0; sent < 8<<30; sent += len(payload) {
				if _, _, err := connection.SendRequest("keepalive@example.com", false, payload); err != nil {
					return
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			key, public := clientKey(t, "")
			server := newSSHServer(t, public)
			closing := func(connection *ssh.ServerConn, channel ssh.Channel) {
				respond(connection, channel)
				_ = channel.Close()
			}
			server.respond.Store(&closing)
			outcome := startClient(t, clientTask{
				URL: server.url("/repository"), Operation: "Check", Key: key, KnownHosts: server.knownHosts(),
				Limits: clientLimits{Memory: hostileMemory, Transfer: hostileTransfer / 4},
			})
			// Data of another protocol may exceed the limit before it is parsed.
			if outcome.Kind != ends[name] && (outcome.Kind != gitrepo.TooLarge || ends[name] != gitrepo.Protocol) {
				t.Errorf("client returned %s, %q; want %s", outcome.Kind, outcome.Message, ends[name])
			}
			outcome.checkMemory(t)
		})
	}
}
