/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package related_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/synchub-dev/synchub/controllers/plan/related"
)

// newRelation returns a relation to secrets in the mailbox.
func newRelation(identifier string) *related.Relation {
	return &related.Relation{Identifier: identifier, Origin: inMailbox, OnTarget: secrets, InMailbox: secrets}
}

func key(namespace, name string) types.NamespacedName {
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// named returns a query by name in the primary's namespace.
func named(namespace string, names ...string) related.Query {
	query := related.Query{SourceNamespace: namespace}
	for _, name := range names {
		query.Names = append(query.Names, key(namespace, name))
	}
	return query
}

// recorder is a registry with claims on secrets in the mailbox, and its notifications.
type recorder struct {
	*related.Registry
	t       *testing.T
	changes []related.Change
}

func newRecorder(t *testing.T) *recorder {
	register := &recorder{Registry: related.NewRegistry(), t: t}
	register.Subscribe(inMailbox, secrets.GroupResource(), func(change related.Change) { register.changes = append(register.changes, change) })
	return register
}

// takeChanges returns the notifications since the last call.
func (r *recorder) takeChanges() []related.Change {
	changes := r.changes
	r.changes = nil
	return changes
}

func (r *recorder) expect(object related.Object, want string) {
	r.t.Helper()
	found, ok := r.Find(inMailbox, secrets.GroupResource(), object)
	var got string
	switch {
	case ok:
		got = fmt.Sprintf("%s %s", found.Relation.Identifier, found.Primary)
	case r.IsUnrelated(inMailbox, secrets.GroupResource(), object):
		got = "unrelated"
	default:
		got = "unknown"
	}
	if got != want {
		r.t.Errorf("%s is %s, want %s", describe(object), got, want)
	}
}

func (r *recorder) expectChanges(want ...related.Change) {
	r.t.Helper()
	if changes := r.takeChanges(); !slices.EqualFunc(changes, want, func(a, b related.Change) bool { return reflect.DeepEqual(a, b) }) {
		r.t.Errorf("got the changes %+v, want %+v", changes, want)
	}
}

var (
	password = related.Object{Key: key("a", "password")}
	app      = key("a", "app")
	database = key("a", "database")
	// all is the notification of a bucket that became complete.
	all = related.Change{All: true}
)

func names(names ...types.NamespacedName) related.Change { return related.Change{Names: names} }
