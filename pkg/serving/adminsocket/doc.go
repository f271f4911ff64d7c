// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package adminsocket answers how a command asks the server that runs on a data
// directory: over a socket in that directory.
//
// # Who may ask
//
// Whoever may open the files of the directory. The socket has their mode, and
// there is no other check.
//
// # Protocol
//
// Plain HTTP/1.1, one request for each connection. A command is a method and a
// path; its arguments are the query, its input the body. The answer is streamed:
// it begins with the command's first output, and an error that comes later is
// sent behind it, so that an answer which was cut off is never taken for a
// whole one.
//
//	socket, err := control.Listen(ctx, dir)
//	socket.Handle("GET /store/check", func(answer io.Writer, request *http.Request) error { ... })
//	go socket.Serve()
//	defer socket.Close() // before what the handlers use is closed
//
//	answer, err := control.NewClient(dir).Do(ctx, http.MethodGet, "/store/check", nil, nil)
//	if errors.Is(err, control.ErrNotRunning) { ... open the files instead ... }
package adminsocket
