package query

import "context"

// Result is the result of an SQL query.
type Result struct {
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
	More    bool     `json:"more"` // the limit cut off rows
}

// Query runs a query in the SQL of DuckDB or ClickHouse: one SELECT over the tables dumps, facts, paths and frames.
// The query cannot change anything. In DuckDB, it can read only the files of the store; in ClickHouse, what the
// user of the connection can read. The result has up to limit rows.
func (d *DB) Query(ctx context.Context, q string, o Scope, limit int) (*Result, error) {
	var res *Result
	o.counted = true
	err := d.with(ctx, o, allTables, func(s *session) (err error) {
		single := "select * from query(" + quote(q) + ")" // DuckDB's function query accepts only a single SELECT
		if d.clickhouse != nil {
			single = "select * from (\n" + q + "\n)"
		}
		res, err = s.any(ctx, single, limit)
		return err
	})
	return res, err
}

func (s *session) any(ctx context.Context, q string, limit int) (*Result, error) {
	r, err := s.query(ctx, q)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	res := &Result{}
	if res.Columns, err = r.Columns(); err != nil {
		return nil, err
	}
	for r.Next() {
		if len(res.Rows) == limit {
			res.More = true
			return res, nil
		}
		row := make([]any, len(res.Columns))
		into := make([]any, len(row))
		for i := range row {
			into[i] = &row[i]
		}
		if err := r.Scan(into...); err != nil {
			return nil, err
		}
		res.Rows = append(res.Rows, row)
	}
	return res, r.Err()
}
