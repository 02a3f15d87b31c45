"""Read files of other tools into our tables; the only place that converts units."""
