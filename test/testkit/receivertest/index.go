// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package receivertest

import (
	"encoding/json"
	"net/http"
	"slices"
	"time"
)

// Object is what a consumer was told of an instance. Of a definition, there is nothing in it.
type Object struct {
	Labels, Annotations  map[string]string
	CreatedAt, UpdatedAt time.Time
}

// entry is an object under the name that tests know it by.
type entry struct {
	name string
	Object
}

// index is what a consumer knows, by what it knows it by.
type index map[string]entry

// telling is what a call says.
type telling struct {
	upserts map[string]entry
	deletes []string
	// answer is that of the consumer, which may depend on how many of the deletes it knew.
	answer func(known int) reply
}

// reply is a status and a body.
type reply struct {
	code int
	body string
}

// apply deletes, then upserts, and returns how many of the deletes were known.
func (x index) apply(told telling) (known int) {
	for _, id := range told.deletes {
		if _, found := x[id]; found {
			known++
		}
		delete(x, id)
	}
	for id, object := range told.upserts {
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

// replyJSON is a reply with a body of JSON.
func replyJSON(code int, body any) reply {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return reply{code, string(text)}
}

// refuse is the reply to what is refused for these reasons.
func refuse(code int, faults ...string) reply {
	return replyJSON(code, map[string]any{"error": http.StatusText(code), "details": faults})
}
