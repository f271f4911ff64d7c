// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package testkit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// firstPort and lastPort are below the ports of outgoing connections, so that none takes one between the check and the start of a program,
// or while the program is stopped, and below those of development clusters.
const firstPort, lastPort = 15000, 19999

// FreeAddresses returns different addresses of loopback on which nothing listens.
func FreeAddresses(t testing.TB, count int) []string {
	t.Helper()
	var free []string
	for _, offset := range rand.Perm(lastPort - firstPort + 1) {
		address := fmt.Sprintf("127.0.0.1:%d", firstPort+offset)
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			continue
		}
		_ = listener.Close()
		if free = append(free, address); len(free) == count {
			return free
		}
	}
	t.Fatalf("%d ports are free, want %d", len(free), count)
	return nil
}

// FreeAddress returns an address of loopback on which nothing listens.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return FreeAddresses(t, 1)[0]
}
