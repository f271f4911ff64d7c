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
	if _, err := io.WriteString(out, question); err != nil {
		return err
	}
	type line struct {
		text string
		err  error
	}
	answers := make(chan line, 1)
	go func() {
		text, err := bufio.NewReader(in).ReadString('\n')
		answers <- line{text, err}
	}()
	var answer line
	select {
	case answer = <-answers:
	case <-ctx.Done():
		return fmt.Errorf("ended: %w; %w", context.Cause(ctx), errDeclined)
	}
	if answer.err != nil && !errors.Is(answer.err, io.EOF) {
		return answer.err
	}
	switch strings.ToLower(strings.TrimSpace(answer.text)) {
	case "y", "yes":
		return nil
	}
	return errDeclined
}
