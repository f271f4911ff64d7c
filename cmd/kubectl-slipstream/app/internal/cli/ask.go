// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// errDeclined is returned if the user does not want to write.
var errDeclined = errors.New("nothing is written")

// Ask asks a question, and fails unless the answer is yes. If ctx ends, it does not wait for the answer: the read ends with the process.
func Ask(ctx context.Context, in io.Reader, out io.Writer, question string) error {
	answer, err := NewQuestions(in, out).Ask(ctx, question)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch answer {
	case "y", "yes":
		return nil
	}
	return errDeclined
}

// Questions asks several questions of one user.
type Questions struct {
	in  *bufio.Reader
	out io.Writer
}

// NewQuestions returns questions that are written to out, with the answers in the lines of in.
func NewQuestions(in io.Reader, out io.Writer) *Questions {
	return &Questions{bufio.NewReader(in), out}
}

// Ask asks a question, and returns the answer without blanks around it and in lower case. It returns io.EOF with the last answer if there
// are no more. If ctx ends, it does not wait for the answer, and no other question can be asked: the read ends with the process.
func (q *Questions) Ask(ctx context.Context, question string) (string, error) {
	if _, err := io.WriteString(q.out, question); err != nil {
		return "", err
	}
	type line struct {
		text string
		err  error
	}
	answers := make(chan line, 1)
	go func() {
		text, err := q.in.ReadString('\n')
		answers <- line{text, err}
	}()
	select {
	case answer := <-answers:
		return strings.ToLower(strings.TrimSpace(answer.text)), answer.err
	case <-ctx.Done():
		return "", fmt.Errorf("ended: %w; %w", context.Cause(ctx), errDeclined)
	}
}
