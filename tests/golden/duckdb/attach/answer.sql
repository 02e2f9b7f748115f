(
    SELECT CASE WHEN asked.answer.fault IS NULL THEN asked.answer ELSE error(asked.answer.fault) END AS answer
    FROM (
        SELECT
            "f"(
                CAST(called.options AS VARCHAR),
                seen,
                current_query_id(),
                current_query()
            ) AS answer
        FROM repeat(
            json_object(
                'source', "source",
                'into', "into"
            ),
            1
        ) AS called(options)
    ) AS asked
)
