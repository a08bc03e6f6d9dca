package postgres_test

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlimit/weir/algorithm"
	"github.com/weirlimit/weir/store"
	"github.com/weirlimit/weir/store/postgres"
)

// It needs a server, and is therefore not run.
//
//nolint:testableexamples // as above
func Example() {
	ctx := context.Background()
	s, err := postgres.Open(ctx, "postgres://app@db.internal/shop?sslmode=verify-full&weir_table=limits.states", postgres.Options{
		Timeout: 200 * time.Millisecond,
	})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	b, err := s.Bind(store.Spec{Name: "login", Limit: algorithm.MustParseLimit("5/1m")})
	if err != nil {
		panic(err)
	}
	v, err := b.Do(ctx, "user:42", algorithm.Op{Cost: 1}, store.OwnClock)
	fmt.Println(v.Granted, v.Remaining, err)
	fmt.Println(s.TrustsClientTime(), s.Counts().Conflicts, s.Check(ctx), s.Breaker().State().Position)
}

// Several limits of one request are charged in one step, or none is. It needs a server, and is therefore not run.
//
//nolint:testableexamples // as above
func ExampleStore_TakeAll() {
	ctx := context.Background()
	s, err := postgres.Open(ctx, "postgres://app@db.internal/shop", postgres.Options{})
	if err != nil {
		panic(err)
	}
	defer s.Close()
	var parts []store.Part
	for name, text := range map[string]string{"burst": "5/1s", "quota": "10000/month"} {
		limit := algorithm.MustParseLimit(text)
		b, err := s.Bind(store.Spec{Name: name, Limit: limit})
		if err != nil {
			panic(err)
		}
		parts = append(parts, store.Part{Store: s, Binding: b, Limit: limit, Name: name, Key: "tenant:7", Cost: 1})
	}
	outcomes, err := s.TakeAll(ctx, parts, store.OwnClock, nil) // as store.TakeAll and weir.TakeAll do
	fmt.Println(len(outcomes), err)
}

// On a pool that the program has anyway. It speaks to no server before the first decision.
func ExampleNew() {
	pool, err := pgxpool.New(context.Background(), "postgres://app@db.internal/shop")
	if err != nil {
		panic(err)
	}
	defer pool.Close()
	s, err := postgres.New(pool, postgres.Options{Prefix: "shop", SweepEvery: -1})
	if err != nil {
		panic(err)
	}
	fmt.Println(s.TrustsClientTime(), s.Close())
	// Output: false <nil>
}

func ExampleMigration() {
	sql, err := postgres.Migration(postgres.Options{Table: "limits.states"})
	fmt.Print(sql, err)
	// Output:
	// CREATE TABLE IF NOT EXISTS "limits"."states" (
	//     name    text COLLATE "C" PRIMARY KEY,
	//     words   bigint[] NOT NULL,
	//     expires timestamptz NOT NULL,
	//     head    text COLLATE "C" NOT NULL DEFAULT ''
	// ) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
	// ALTER TABLE "limits"."states" ADD COLUMN IF NOT EXISTS head text COLLATE "C" NOT NULL DEFAULT '';
	// <nil>
}

func ExampleOpen_refused() {
	_, err := postgres.Open(context.Background(), "postgres://app:secret@db.internal/shop?weir_tabel=states", postgres.Options{})
	fmt.Println(err)
	// Output: postgres: URL has the parameter "weir_tabel"; accepted: weir_table, weir_prefix, weir_unlogged, weir_timeout, weir_max_calls, weir_lazy, weir_migrate, and those of libpq
}
