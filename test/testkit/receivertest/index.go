// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Object is an instance as a consumer has received it. It is empty for a definition.
type Object struct {
	Labels, Annotations  map[string]string
	CreatedAt, UpdatedAt time.Time
}

// entry is an object with the name by which tests identify it.
type entry struct {
	name string
	Object
}

// index has the objects of a consumer, by the consumer's ids.
type index map[string]entry

// changes is the content of a call.
type changes struct {
	upserts map[string]entry
	deletes []string
	// answer returns the response of the consumer, which may depend on the number of deleted objects that it had.
	answer func(known int) reply
}

// reply is a response with a status and a body.
type reply struct {
	code int
	body string
}

// apply applies the deletes and then the upserts. It returns the number of deleted objects that existed.
func (x index) apply(received changes) (known int) {
	for _, id := range received.deletes {
		if _, found := x[id]; found {
			known++
		}
		delete(x, id)
	}
	for id, object := range received.upserts {
		x[id] = object
	}
	return known
}

func (x index) names() []string {
	names := make([]string, 0, len(x))
	for _, object := range x {
		names = append(names, object.name)
	}
	slices.Sort(names)
	return names
}

func (x index) named(name string) (Object, bool) {
	for _, object := range x {
		if object.name == name {
			return object.Object, true
		}
	}
	return Object{}, false
}

// replyJSON returns a reply with a JSON body.
func replyJSON(code int, body any) reply {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return reply{code, string(text)}
}

// refuse returns the reply to a call with faults.
func refuse(code int, faults ...string) reply {
	return replyJSON(code, map[string]any{"error": http.StatusText(code), "details": faults})
}
