// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package giteatest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
)

// call sends a request to the REST API as the user. body is the content, or nil. The response is decoded into result unless that is nil.
func (u *User) call(ctx context.Context, method, path string, body, result any) error {
	content := &bytes.Buffer{}
	if body != nil {
		if err := json.NewEncoder(content).Encode(body); err != nil {
			return err
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, u.server.URL+"/api/v1"+path, content)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth(u.Name, u.Password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode >= http.StatusBadRequest:
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, text)
	case result != nil:
		return json.Unmarshal(text, result)
	}
	return nil
}

// do is call for a request that must succeed.
func (u *User) do(t testing.TB, method, path string, body, result any) {
	t.Helper()
	if err := u.call(t.Context(), method, path, body, result); err != nil {
		t.Fatal(err)
	}
}

// object is a JSON object.
type object = map[string]any
