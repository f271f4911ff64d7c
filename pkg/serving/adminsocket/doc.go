// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adminsocket lets commands reach the server that runs on a data directory, over a socket in that directory.
//
// # Authorization
//
// Every user who is allowed to open the files of the directory. The socket has their mode, and there is no other check.
//
// # Protocol
//
// Plain HTTP/1.1 with one request for each connection. A command is a method and a path. Its arguments are the query,
// its input is the body. The output is streamed from the first byte on, and a later error is sent as a trailer, so that
// truncated output is never taken for complete.
//
//	socket, err := adminsocket.Listen(ctx, dir)
//	socket.Handle("GET /store/check", func(answer io.Writer, request *http.Request) error { ... })
//	go socket.Serve()
//	defer socket.Close() // before what the handlers use is closed
//
//	answer, err := adminsocket.NewClient(dir).Do(ctx, http.MethodGet, "/store/check", nil, nil)
//	if errors.Is(err, adminsocket.ErrNotRunning) { ... open the files instead ... }
package adminsocket
