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

package synctarget

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
	"github.com/synchub-dev/synchub/provider/targets"
	"github.com/synchub-dev/synchub/provider/targets/kubeconfig"
)

func TestRenewalDue(t *testing.T) {
	for _, life := range []time.Duration{10 * time.Minute, time.Hour, 30 * 24 * time.Hour} {
		token := kubeconfig.Token{IssuedAt: noon, ExpiresAt: noon.Add(life)}
		earliest, latest := 1.0, 0.0
		for i := range 1000 {
			uid := types.UID(fmt.Sprint("target-", i))
			due := renewalDue(token, uid)
			if !due.Equal(renewalDue(token, uid)) {
				t.Fatal("it is not the same each time")
			}
			passed := float64(due.Sub(noon)) / float64(life)
			earliest, latest = min(earliest, passed), max(latest, passed)
		}
		if earliest < 0.599 || earliest > 0.605 || latest > 0.667 || latest < 0.66 {
			t.Errorf("after %.3f to %.3f of %v, want it when between a third and two fifths are left", earliest, latest, life)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for name, test := range map[string]struct{ left, shortest, longest time.Duration }{
		"in good time":   {time.Hour * 100, 8 * time.Minute, 12 * time.Minute},
		"of a short one": {2 * time.Minute, 30 * time.Second, 30 * time.Second},
		"at the end":     {time.Second, 10 * time.Second, 10 * time.Second},
		"after it":       {-time.Hour, 10 * time.Second, 10 * time.Second},
	} {
		for i := range 100 {
			if got := retryAfter(types.UID(fmt.Sprint(i)), test.left); got < test.shortest || got > test.longest {
				t.Errorf("%s: again after %v", name, got)
			}
		}
	}
}

func TestRenewalFailureMessage(t *testing.T) {
	token := kubeconfig.Token{Namespace: "synchub", ServiceAccount: "hub", ExpiresAt: noon}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "serviceaccounts/token"}, "hub", errors.New("no"))
	for name, test := range map[string]struct {
		err  error
		says []string
		not  string
	}{
		"no right": {fmt.Errorf("request: %w", forbidden), []string{
			"2026-01-02T12:00:00Z", "allow its ServiceAccount synchub/hub to create serviceaccounts/token", "`kubectl synchub rotate florin --target-kubeconfig FILE`",
		}, "described"},
		"no right to the Secret": {&writeError{fmt.Errorf("write: %w", forbidden)}, []string{"2026-01-02T12:00:00Z", "described", "`kubectl synchub rotate florin --target-kubeconfig FILE`"}, "allow"},
		"anything else":          {errors.New("x"), []string{"2026-01-02T12:00:00Z", "described", "tried again", "`kubectl synchub rotate florin --target-kubeconfig FILE`"}, "allow"},
	} {
		got := renewalFailureMessage(token, "florin", test.err, "described")
		for _, part := range test.says {
			if !strings.Contains(got, part) {
				t.Errorf("%s: %q does not contain %q", name, got, part)
			}
		}
		if strings.Contains(got, test.not) {
			t.Errorf("%s: %q contains %q", name, got, test.not)
		}
	}
}

func TestStatusTellsOfTheToken(t *testing.T) {
	token := kubeconfig.Token{IssuedAt: noon.Add(-time.Hour), ExpiresAt: noon.Add(time.Hour), Hash: "this"}
	renewed := noon.Add(-time.Minute)
	for name, test := range map[string]struct {
		health        targets.Health
		has           bool
		done          time.Time
		before        *edgev2alpha1.CredentialsStatus
		ends, renewal *metav1.Time
	}{
		"a token":                     {up, true, time.Time{}, nil, &metav1.Time{Time: token.ExpiresAt}, nil},
		"a renewed one":               {up, true, renewed, nil, &metav1.Time{Time: token.ExpiresAt}, &metav1.Time{Time: renewed}},
		"renewed by the hub before":   {up, true, time.Time{}, &edgev2alpha1.CredentialsStatus{RenewedAt: &metav1.Time{Time: renewed}}, &metav1.Time{Time: token.ExpiresAt}, &metav1.Time{Time: renewed}},
		"renewed once more":           {up, true, noon, &edgev2alpha1.CredentialsStatus{RenewedAt: &metav1.Time{Time: renewed}}, &metav1.Time{Time: token.ExpiresAt}, &metav1.Time{Time: noon}},
		"a token instead of another":  {up, true, time.Time{}, &edgev2alpha1.CredentialsStatus{ExpiresAt: &metav1.Time{Time: noon}}, &metav1.Time{Time: token.ExpiresAt}, nil},
		"no token any more":           {up, false, time.Time{}, &edgev2alpha1.CredentialsStatus{ExpiresAt: &metav1.Time{Time: noon}}, nil, nil},
		"no connection, so no change": {targets.Health{}, false, time.Time{}, &edgev2alpha1.CredentialsStatus{ExpiresAt: &metav1.Time{Time: noon}}, &metav1.Time{Time: noon}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			syncTarget := &edgev2alpha1.SyncTarget{}
			syncTarget.Status.Credentials = test.before
			view := statusView{now: noon, health: test.health, token: token, hasToken: test.has}
			if test.health.Reason == "" {
				view.problem = missing
			}
			view.apply(syncTarget, &syncTargetState{renewal: renewal{renewedAt: test.done}})
			got := syncTarget.Status.Credentials
			if got == nil {
				got = &edgev2alpha1.CredentialsStatus{}
			}
			if hasHash := got.TokenHash == token.Hash; hasHash != (test.has && test.health.Reason != "") {
				t.Errorf("the hash of the token is %q", got.TokenHash)
			}
			if !got.ExpiresAt.Equal(test.ends) || !got.RenewedAt.Equal(test.renewal) {
				t.Errorf("want %v and %v, got %v and %v", test.ends, test.renewal, got.ExpiresAt, got.RenewedAt)
			}
		})
	}
}
