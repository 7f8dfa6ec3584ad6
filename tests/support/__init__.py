"""What several tests share: tables of cases, drawn inputs, golden files, comparisons."""
