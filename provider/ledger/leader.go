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

package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/synchub-dev/synchub/provider/storehistory"
)

const (
	// leaderConfigMap is the ConfigMap of the leading hub. renewTimeKey is the key of the time of its last write, and
	// leaseKey and namespaceKey are the keys of its [HubIdentity].
	leaderConfigMap, renewTimeKey, leaseKey, namespaceKey = "leader", "led", "lease", "namespace"
	// renewInterval is the interval at which the leader writes that ConfigMap. A hub that has not written it for
	// otherHubTimeout has ended.
	renewInterval   = time.Minute
	otherHubTimeout = 2 * renewInterval
	// retryInterval is when a replica tries again to compare the leader with its own hub.
	retryInterval = 2 * time.Second
)

// ErrOtherHubActive is returned if a hub in another hosting cluster uses the same provider workspace.
var ErrOtherHubActive = errors.New("another hub works with this provider workspace")

// HubIdentity identifies a hub by its Lease, which its replicas share.
type HubIdentity struct {
	// Lease is the UID of the Lease.
	Lease string
	// Namespace is the UID of the namespace of the Lease; empty if the hub may not read it. A deleted Lease is created again with
	// another UID, but in the same namespace.
	Namespace string
}

// isOther reports whether the given identity belongs to another hub. A hub without a Lease treats no hub as another one.
func (h HubIdentity) isOther(other HubIdentity) bool {
	return h.Lease != "" && h.Lease != other.Lease && (h.Namespace == "" || h.Namespace != other.Namespace)
}

// follow waits until this replica leads, or ctx ends. Before this replica leads, it counts the entries as loaded once the
// watch has shown all of them and a leader of this hub works with the provider workspace. A replica must not work while its
// leader still waits for the end of another hub. The error is [ErrOtherHubActive] if another hub has taken over since.
func (s *Store) follow(ctx context.Context) error {
	identified, logged := false, ""
	for !s.leads() {
		failed, retry := s.watchFailed, (<-chan time.Time)(nil)
		if isClosed(s.followed) {
			failed = nil
		}
		switch err := s.followLeader(ctx, &identified); {
		case errors.Is(err, ErrOtherHubActive):
			return err
		case err != nil:
			retry = s.Clock.After(retryInterval)
			if err.Error() != logged {
				logged = err.Error()
				s.Log.Info("cannot determine whether this hub has a leader, will retry", "error", logged)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-s.Elected:
		case <-s.leaderChanged:
		case <-retry:
		}
	}
	return nil
}

// followLeader compares the leader with this hub. identified is true once this hub has its identity.
func (s *Store) followLeader(ctx context.Context, identified *bool) (err error) {
	s.lock.Lock()
	leader, watched := s.watchedLeader, s.watched
	s.lock.Unlock()
	if !watched || leader.version == "" {
		return nil
	}
	if !*identified || leader.otherThan(s.self) != "" {
		// The Lease of this hub may have changed.
		if s.self, err = s.readIdentity(ctx); err != nil {
			return err
		}
		*identified = true
	}
	other := leader.otherThan(s.self)
	if other != "" && isClosed(s.followed) {
		return s.self.otherHubError(other, leader.renewTime)
	}
	if other != "" {
		return nil
	}
	if err := s.History.Load(ctx); err != nil {
		return fmt.Errorf("cannot read whether kcp was restored: %w", err)
	}
	if !isClosed(s.followed) {
		s.setPreviousRenewTime(leader.renewTime)
		close(s.followed)
	}
	return nil
}

// observeLeader notes the leaderConfigMap that the watch has shown.
func (s *Store) observeLeader(leader leaderRecord) {
	s.lock.Lock()
	s.watchedLeader = leader
	s.lock.Unlock()
	s.wakeFollower()
}

func (s *Store) wakeFollower() {
	select {
	case s.leaderChanged <- struct{}{}:
	default:
	}
}

// lead reads all entries, and then writes regularly that this hub leads, until ctx ends.
func (s *Store) lead(ctx context.Context) error {
	if err := s.load(ctx); err != nil {
		return err
	}
	defer s.History.Track(storehistory.LedgerSource, s.ledVersion.Load)()
	ticker := s.Clock.NewTicker(renewInterval)
	defer ticker.Stop()
	for {
		err := s.renewLeader(ctx)
		if errors.Is(err, ErrOtherHubActive) {
			return err
		}
		if err != nil && ctx.Err() == nil {
			s.Log.Info("cannot write that this hub leads; a restart will check every target again", "error", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
	}
}

// load waits for the end of another hub. Then it reads all entries: the former leader may have written since the watch showed them.
func (s *Store) load(ctx context.Context) (err error) {
	if s.self, err = s.readIdentity(ctx); err != nil {
		return err
	}
	renewTime, err := s.waitForPreviousHub(ctx)
	if err != nil {
		return err
	}
	s.History.Check(storehistory.LedgerSource, s.leaderDescription(), storehistory.ParseVersion(s.leaderVersion))
	if err := s.History.Load(ctx); err != nil {
		return err
	}
	if err := s.EnsureFresh(ctx, s.Clock.Now()); err != nil {
		return err
	}
	s.setPreviousRenewTime(renewTime)
	close(s.led)
	if !isClosed(s.followed) {
		close(s.followed)
	}
	return nil
}

// waitForPreviousHub returns the last renew time of the previous leader, or zero if there is none. If the previous leader was
// another hub that is still active, the error is [ErrOtherHubActive]. A previous leader with the same Lease needs no wait.
// The clocks of two hubs may differ. If the renew time is not recent by this hub's clock, waitForPreviousHub waits and checks
// whether the other hub writes.
func (s *Store) waitForPreviousHub(ctx context.Context) (time.Time, error) {
	renewTime, other, err := s.readLeader(ctx)
	if err != nil || other == "" {
		return renewTime, err
	}
	if s.Clock.Since(renewTime).Abs() < otherHubTimeout {
		return renewTime, s.self.otherHubError(other, renewTime)
	}
	s.Log.Info("another hub used this provider workspace; waiting to check whether it still runs", "lease", other, "led", renewTime, "wait", otherHubTimeout)
	observed := s.leaderVersion
	select {
	case <-ctx.Done():
		return renewTime, ctx.Err()
	case <-s.Clock.After(otherHubTimeout):
	}
	renewTime, other, err = s.readLeader(ctx)
	if err == nil && other != "" && s.leaderVersion != observed {
		err = s.self.otherHubError(other, renewTime)
	}
	return renewTime, err
}

// readLeader returns the last renew time of a leader, or zero if there is none. other is the UID of its Lease, or "" if the
// leader belongs to this hub.
func (s *Store) readLeader(ctx context.Context) (renewTime time.Time, other string, err error) {
	leader, err := s.getLeader(ctx)
	if err != nil {
		return time.Time{}, "", err
	}
	s.leaderVersion = leader.version
	return leader.renewTime, leader.otherThan(s.self), nil
}

// leaderRecord is the content of leaderConfigMap, and its resourceVersion. It is zero if there is none.
type leaderRecord struct {
	HubIdentity
	renewTime time.Time
	version   string
}

// otherThan returns the Lease of the leader if the leader belongs to another hub, else "".
func (r leaderRecord) otherThan(hub HubIdentity) string {
	if hub.isOther(r.HubIdentity) {
		return r.Lease
	}
	return ""
}

func (s *Store) getLeader(ctx context.Context) (leaderRecord, error) {
	stored, err := s.getConfigMap(ctx, leaderConfigMap)
	switch {
	case apierrors.IsNotFound(err):
		return leaderRecord{}, nil
	case err != nil:
		return leaderRecord{}, s.readError(err)
	}
	return decodeLeader(stored), nil
}

func decodeLeader(stored *corev1.ConfigMap) leaderRecord {
	renewTime, err := time.Parse(time.RFC3339, stored.Data[renewTimeKey])
	if err != nil {
		renewTime = time.Time{}
	}
	return leaderRecord{HubIdentity{Lease: stored.Data[leaseKey], Namespace: stored.Data[namespaceKey]}, renewTime, stored.ResourceVersion}
}

func (s *Store) readIdentity(ctx context.Context) (self HubIdentity, err error) {
	if s.Identity == nil {
		return HubIdentity{}, nil
	}
	err = s.withTimeout(ctx, func(ctx context.Context) error { self, err = s.Identity(ctx); return err })
	if err != nil {
		return HubIdentity{}, fmt.Errorf("cannot read this hub's Lease: %w", err)
	}
	return self, nil
}

// otherHubError is the error of this hub if another one, with the given Lease, leads.
func (h HubIdentity) otherHubError(lease string, renewTime time.Time) error {
	return fmt.Errorf("%w: it leads by the Lease with the UID %s, and did at %s by its clock; this one has the Lease %s. Stop one of them, or give it its own provider workspace. "+
		"The record of a stopped hub expires after two minutes", ErrOtherHubActive, lease, renewTime.Format(time.RFC3339), h.Lease)
}

// renewLeader writes that this hub leads now. A conflict proves that another hub has written, regardless of the clocks. The
// error is then [ErrOtherHubActive].
func (s *Store) renewLeader(ctx context.Context) error {
	for {
		version, err := s.write(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: leaderConfigMap, Labels: map[string]string{ledgerLabel: labelLeader}, ResourceVersion: s.leaderVersion},
			Data:       map[string]string{renewTimeKey: s.Clock.Now().UTC().Format(time.RFC3339), leaseKey: s.self.Lease, namespaceKey: s.self.Namespace},
		})
		if err == nil {
			s.leaderVersion = version
			s.ledVersion.Store(storehistory.ParseVersion(version))
		}
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) && (s.leaderVersion == "" || !apierrors.IsNotFound(err)) {
			return err
		}
		renewTime, other, err := s.readLeader(ctx)
		if now := storehistory.ParseVersion(s.leaderVersion); err == nil && now > 0 && now < s.ledVersion.Load() {
			s.History.Report(s.leaderDescription(), s.ledVersion.Load(), now)
			s.ledVersion.Store(now)
		}
		if err == nil && other != "" {
			err = s.self.otherHubError(other, renewTime)
		}
		if err != nil {
			return err
		}
	}
}

// leaderDescription names leaderConfigMap in messages.
func (s *Store) leaderDescription() string {
	return fmt.Sprintf("the ConfigMap %s/%s of the hub's ledger", Namespace, leaderConfigMap)
}
